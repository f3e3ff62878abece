/** The schema of `AuthenticationConfiguration` (apiserver.config.k8s.io/v1beta1). */
import { boolean, list, object, optional, pointer, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";

const claimOrExpression = { claim: optional(0, string), expression: optional(0, string) };
const prefixedClaimOrExpression = object("apiserver/v1beta1.PrefixedClaimOrExpression", {
  ...claimOrExpression,
  prefix: pointer(0, string),
});

const jwtAuthenticator = object("apiserver/v1beta1.JWTAuthenticator", {
  issuer: optional(
    0,
    object("apiserver/v1beta1.Issuer", {
      url: optional(0, string),
      discoveryURL: pointer(0, string),
      certificateAuthority: optional(0, string),
      audiences: optional(0, list(string)),
      audienceMatchPolicy: optional(0, string),
    }),
  ),
  claimValidationRules: optional(
    0,
    list(
      object("apiserver/v1beta1.ClaimValidationRule", {
        claim: optional(0, string),
        requiredValue: optional(0, string),
        expression: optional(0, string),
        message: optional(0, string),
      }),
    ),
  ),
  claimMappings: optional(
    0,
    object("apiserver/v1beta1.ClaimMappings", {
      username: optional(0, prefixedClaimOrExpression),
      groups: optional(0, prefixedClaimOrExpression),
      uid: optional(0, object("apiserver/v1beta1.ClaimOrExpression", claimOrExpression)),
      extra: optional(
        0,
        list(
          object("apiserver/v1beta1.ExtraMapping", { key: optional(0, string), valueExpression: optional(0, string) }),
        ),
      ),
    }),
  ),
  userValidationRules: optional(
    0,
    list(
      object("apiserver/v1beta1.UserValidationRule", { expression: optional(0, string), message: optional(0, string) }),
    ),
  ),
});
export type JwtAuthenticator = Infer<typeof jwtAuthenticator>;

const anonymousAuthConfig = object("apiserver/v1beta1.AnonymousAuthConfig", {
  enabled: optional(0, boolean),
  conditions: optional(0, list(object("apiserver/v1beta1.AnonymousAuthCondition", { path: optional(0, string) }))),
});

export const authenticationConfiguration = object("apiserver/v1beta1.AuthenticationConfiguration", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  jwt: optional(0, list(jwtAuthenticator)),
  anonymous: pointer(0, anonymousAuthConfig),
});
