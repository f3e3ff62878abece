import { JWT_ALGORITHMS } from "../../auth/authn/jwt/algorithms.ts";
import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { strings } from "../../flags/types/list.ts";
import { pairs } from "../../flags/types/map.ts";
import { httpsUrl } from "../../flags/types/network.ts";
import { bool, file, oneOf, text } from "../../flags/types/text.ts";

const withRequestHeaderCa = { requires: ["requestheader-client-ca-file"] };
const withIssuer = { requires: ["oidc-issuer-url"] };

export const authenticationFlags = section("Authentication", {
  "anonymous-auth": flag(
    bool,
    true,
    "Anonymous requests to the secure port. Username system:anonymous, group system:unauthenticated. Refused all " +
      "the same while --authorization-mode has AlwaysAllow.",
  ),
  "authentication-config": flag(
    file,
    "",
    "Authentication configuration file (document 3). Needs gate StructuredAuthenticationConfiguration; " +
      "configuring the anonymous authenticator also needs AnonymousAuthConfigurableEndpoints. Mutually " +
      "exclusive with the --oidc-* flags when the file configures JWT, and with --anonymous-auth when the file " +
      "configures anonymous auth.",
    { gate: "StructuredAuthenticationConfiguration", excludes: ["oidc-*"] },
  ),
  "authentication-token-webhook-config-file": flag(
    file,
    "",
    "Connection-config file of a token-authentication webhook.",
  ),
  "authentication-token-webhook-version": flag(
    oneOf("v1beta1", "v1"),
    "v1beta1",
    "TokenReview version for the webhook.",
    { requires: ["authentication-token-webhook-config-file"] },
  ),
  "authentication-token-webhook-cache-ttl": flag(
    duration({ min: 0 }),
    120_000,
    "Cache duration of responses of the token webhook.",
    { requires: ["authentication-token-webhook-config-file"] },
  ),
  "client-ca-file": flag(file, "", "Client certificates signed by these authorities authenticate as their CommonName."),
  "token-auth-file": flag(file, "", "Token file securing the secure port."),
  "enable-bootstrap-token-auth": flag(
    bool,
    false,
    "Secrets of type bootstrap.svc.io/token in the svc-system namespace may authenticate TLS bootstrapping.",
  ),
  "requestheader-client-ca-file": flag(
    file,
    "",
    "CA bundle verifying client certificates before header-supplied identities are trusted.",
  ),
  "requestheader-allowed-names": flag(
    strings(),
    [],
    "Allowed certificate common names; empty allows any certificate valid under the CA file.",
    withRequestHeaderCa,
  ),
  "requestheader-username-headers": flag(
    strings(),
    [],
    "Headers inspected for usernames (X-Remote-User is common).",
    withRequestHeaderCa,
  ),
  "requestheader-group-headers": flag(
    strings(),
    [],
    "Headers for groups (X-Remote-Group suggested).",
    withRequestHeaderCa,
  ),
  "requestheader-uid-headers": flag(
    strings(),
    [],
    "Headers for UIDs (X-Remote-Uid suggested); needs the RemoteRequestHeaderUID gate.",
    { gate: "RemoteRequestHeaderUID", ...withRequestHeaderCa },
  ),
  "requestheader-extra-headers-prefix": flag(
    strings(),
    [],
    "Header prefixes for extra attributes (X-Remote-Extra- suggested).",
    withRequestHeaderCa,
  ),
  "proxy-client-cert-file": flag(
    file,
    "",
    "Client certificate that proves who calls when requests are proxied or webhooks called.",
    { requires: ["proxy-client-key-file"] },
  ),
  "proxy-client-key-file": flag(file, "", "Key of that client certificate.", { requires: ["proxy-client-cert-file"] }),
  "oidc-issuer-url": flag(httpsUrl, "", "Issuer URL, HTTPS only; verifies JWTs.", { requires: ["oidc-client-id"] }),
  "oidc-client-id": flag(text, "", "Required when the issuer URL is set.", withIssuer),
  "oidc-ca-file": flag(file, "", "CA file for the issuer's certificate; else host roots.", withIssuer),
  "oidc-username-claim": flag(
    text,
    "sub",
    "Claim used as username; other claims are not guaranteed unique and immutable (experimental).",
    withIssuer,
  ),
  "oidc-username-prefix": flag(
    text,
    "",
    "Prefix for usernames; if unset, claims other than email get the issuer URL as prefix; - means no prefix.",
    withIssuer,
  ),
  "oidc-groups-claim": flag(text, "", "Claim naming groups (string or string array; experimental).", withIssuer),
  "oidc-groups-prefix": flag(text, "", "Prefix for all groups.", withIssuer),
  "oidc-required-claim": flag(
    pairs({ name: "key=value", sample: "hd=example.com" }),
    {},
    "Required ID-token claim; repeatable.",
    withIssuer,
  ),
  "oidc-signing-algs": flag(
    strings({ choices: JWT_ALGORITHMS }),
    ["RS256"],
    "Allowed JOSE algorithms: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512.",
    withIssuer,
  ),
  "api-audiences": flag(
    strings(),
    [],
    "Audiences the service account token authenticator accepts (token must be bound to at least one).",
    { defaultNote: "the issuer URL, when --service-account-issuer is set" },
  ),
  "service-account-issuer": flag(
    strings(),
    [],
    "Token issuer identifier in the iss claim; should be an HTTPS URL able to serve discovery at " +
      "{issuer}/.well-known/openid-configuration; if not a valid URI, issuer discovery stays disabled; if " +
      "repeated, the first signs and all are accepted.",
  ),
  "service-account-jwks-uri": flag(httpsUrl, "", "Overrides the JWKS URI in the discovery document."),
  "service-account-key-file": flag(
    strings({ path: "file", sample: "/etc/svc/sa.pub" }),
    [],
    "PEM x509 RSA or ECDSA keys verifying tokens; repeatable; falls back to --tls-private-key-file; required " +
      "when --service-account-signing-key-file is given.",
  ),
  "service-account-signing-key-file": flag(file, "", "Current private key that signs issued tokens.", {
    requires: ["service-account-key-file"],
  }),
  "service-account-signing-endpoint": flag(
    file,
    "",
    "Socket of an external signer; exclusive with the two key-file flags; needs gate " +
      "ExternalServiceAccountTokenSigner.",
    {
      gate: "ExternalServiceAccountTokenSigner",
      excludes: ["service-account-key-file", "service-account-signing-key-file"],
    },
  ),
  "service-account-lookup": flag(bool, true, "Check that tokens exist in the store."),
  "service-account-max-token-expiration": flag(
    duration({ min: 0 }),
    0,
    "Upper bound on issued token validity; longer requests are shortened to it.",
  ),
  "service-account-extend-token-expiration": flag(
    bool,
    true,
    "Extend injected token expiry up to 1 year, ignoring the max-expiration flag.",
  ),
});
