"""Claims of tokens, as the HTTP API's authorizer hands them to the function."""

SCOPES = "games:write moderate operate"
# Who sends what names nobody.
ANYBODY = "player-00001"


def authorizer(request: dict) -> dict:
    """Returns what is added to a request's context. Without a "token" of its own, {"sub", "scope"} or null for none, a request is
    sent by the player whom it names, with all scopes."""
    token = request.get("token", {"sub": named(request), "scope": SCOPES})
    if token is None:
        return {}
    claims = {"iss": "https://issuer.test", "aud": "players-engine", "iat": "0", "exp": "4102444800", **token}
    return {"authorizer": {"jwt": {"claims": claims, "scopes": None}}}


def named(request: dict) -> str:
    """Returns the player whom the path or the body names."""
    match request["path"].partition("?")[0].split("/"):
        case ["", "players", player, _, *_]:
            return player
        case ["", "posts", _, "reactions", player]:
            return player
    body = request.get("body", {})
    return body.get("author_id") or body.get("player_id") or ANYBODY
