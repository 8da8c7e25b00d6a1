"""What the alarms of the templates say of days that went well and of days that did not. Reads the transformed templates; needs
neither a build nor a network."""
