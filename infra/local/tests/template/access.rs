//! Who may call the routes of an HTTP API, as the template says.

use local::model::{Access, JwtAuthorizer};

use crate::support::{FUNCTION, read_files, read_text};

/// An API with an authorizer that is the default, and one that needs a scope.
const API: &str = "
Parameters:
  JwtIssuer: {Type: String}
  Audience: {Type: String, Default: chess}
Resources:
  Api:
    Type: AWS::Serverless::HttpApi
    Properties:
      Auth:
        DefaultAuthorizer: Jwt
        Authorizers:
          Jwt:
            IdentitySource: $request.header.Authorization
            JwtConfiguration: {issuer: !Ref JwtIssuer, audience: [!Ref Audience]}
          Strict:
            IdentitySource: $request.header.X-Token
            AuthorizationScopes: [strict]
            JwtConfiguration: {Issuer: https://other.test, Audience: [one, other]}
";

fn template(api: &str, auth: &str) -> String {
    format!(
        "{api}{FUNCTION}      Events:\n        Get: {{Type: HttpApi, Properties: {{ApiId: !Ref Api, Method: GET, Path: /{auth}}}}}\n"
    )
}

fn token(header: &str, issuer: &str, audiences: &[&str], scopes: &[&str]) -> Access {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let authorizer =
        JwtAuthorizer { header: header.to_owned(), issuer: issuer.to_owned(), audiences: owned(audiences) };
    Access::Token { authorizer, scopes: owned(scopes) }
}

#[test]
fn a_route_says_who_may_call_it_and_the_default_holds_where_it_does_not() {
    let default = |scopes: &[&str]| token("authorization", "https://issuer.test", &["chess"], scopes);
    let strict = |scopes: &[&str]| token("x-token", "https://other.test", &["one", "other"], scopes);
    for (auth, expected) in [
        ("", default(&[])),
        (", Auth: {AuthorizationScopes: [a, b]}", default(&["a", "b"])),
        (", Auth: {AuthorizationScopes: []}", default(&[])),
        (", Auth: {Authorizer: Jwt, AuthorizationScopes: [a]}", default(&["a"])),
        (", Auth: {Authorizer: NONE}", Access::Anyone),
        (", Auth: {Authorizer: Strict}", strict(&["strict"])),
        (", Auth: {Authorizer: Strict, AuthorizationScopes: [a]}", strict(&["a"])),
    ] {
        let files = template(API, auth);
        let model = read_files(&[("template.yaml", &files)], &[("JwtIssuer", "https://issuer.test")]).unwrap();
        assert_eq!(model.routes[0].access, expected, "{auth}");
        assert_eq!(model.unsupported, [], "{auth}");
    }
}

#[test]
fn without_an_authorizer_anybody_may_call() {
    let model = read_text(&template("Resources:\n  Api: {Type: AWS::Serverless::HttpApi}\n", "")).unwrap();

    assert_eq!(model.routes[0].access, Access::Anyone);
}

#[test]
fn an_issuer_that_nobody_names_is_the_local_one() {
    let model = read_text(&template(API, "")).unwrap();

    assert_eq!(model.routes[0].access, token("authorization", "https://issuer.localhost", &["chess"], &[]));
}

#[test]
fn what_could_leave_a_route_open_is_an_error() {
    let without_default = API.replace("        DefaultAuthorizer: Jwt\n", "");
    for (api, auth, property) in [
        (API.to_owned(), ", Auth: {Authorizer: Other}", "Events.Get.Properties.Auth.Authorizer"),
        (API.to_owned(), ", Auth: {Authorizer: AWS_IAM}", "Events.Get.Properties.Auth.Authorizer"),
        (API.to_owned(), ", Auth: {Authorizer: NONE, AuthorizationScopes: [a]}", "AuthorizationScopes"),
        (without_default.clone(), ", Auth: {Authorizer: NONE}", "Events.Get.Properties.Auth.Authorizer"),
        (without_default, ", Auth: {AuthorizationScopes: [a]}", "Events.Get.Properties.Auth.Authorizer"),
        (API.replace("DefaultAuthorizer: Jwt", "DefaultAuthorizer: Other"), "", "Auth.DefaultAuthorizer"),
        (API.replace("DefaultAuthorizer: Jwt", "EnableIamAuthorizer: true"), "", "Auth.EnableIamAuthorizer"),
        (API.replace("$request.header.Auth", "$request.querystring.auth"), "", "Auth.Authorizers.Jwt.IdentitySource"),
        (API.replace("JwtConfiguration: {issuer", "FunctionArn: {issuer"), "", "Auth.Authorizers.Jwt.JwtConfiguration"),
        (API.replace(", audience: [!Ref Audience]", ""), "", "JwtConfiguration.audience"),
        (API.replace("[!Ref Audience]", "!Ref Audience"), "", "JwtConfiguration.audience"),
    ] {
        let error = read_text(&template(&api, auth)).unwrap_err().to_string();
        assert!(error.contains(property), "{property}: {error}");
    }
}

#[test]
fn what_is_not_read_of_an_authorizer_is_reported() {
    let api = API.replace("issuer: !Ref JwtIssuer,", "issuer: !Ref JwtIssuer, clockSkew: 5,");
    let model = read_text(&template(&api, ", Auth: {OverrideApiAuth: true}")).unwrap();

    let unsupported: Vec<_> = model.unsupported.iter().map(|it| it.property.as_str()).collect();
    let expected = ["Auth.Authorizers.Jwt.JwtConfiguration.clockSkew", "Events.Get.Properties.Auth.OverrideApiAuth"];
    assert_eq!(unsupported, expected);
}
