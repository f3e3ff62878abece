import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { bool, file, oneOf } from "../../flags/types/text.ts";
import { inFile } from "./deprecation.ts";

export const authenticationFlags = section("Authentication", {
  "authentication-token-webhook": flag(bool, false, "Authenticate bearer tokens with TokenReviews of the API server.", {
    config: "authentication.webhook.enabled",
    fileDefault: true,
    deprecated: inFile,
  }),
  "anonymous-auth": flag(bool, true, "Allow anonymous requests, as user system:anonymous.", {
    config: "authentication.anonymous.enabled",
    fileDefault: false,
    deprecated: inFile,
  }),
  "client-ca-file": flag(file, "", "see the Authentication section.", {
    config: "authentication.x509.clientCAFile",
    deprecated: inFile,
  }),
  "authentication-token-webhook-cache-ttl": flag(duration({ min: 0 }), 120_000, "see the Authentication section.", {
    config: "authentication.webhook.cacheTTL",
    deprecated: inFile,
  }),
  "authorization-mode": flag(
    oneOf("AlwaysAllow", "Webhook"),
    "AlwaysAllow",
    "Authorization mode of the agent's server: AlwaysAllow, or Webhook (SubjectAccessReviews of the API server).",
    { config: "authorization.mode", fileDefault: "Webhook", deprecated: inFile },
  ),
  "authorization-webhook-cache-authorized-ttl": flag(duration({ min: 0 }), 300_000, "see the Authentication section.", {
    config: "authorization.webhook.cacheAuthorizedTTL",
    deprecated: inFile,
  }),
  "authorization-webhook-cache-unauthorized-ttl": flag(
    duration({ min: 0 }),
    30_000,
    "see the Authentication section.",
    { config: "authorization.webhook.cacheUnauthorizedTTL", deprecated: inFile },
  ),
});
