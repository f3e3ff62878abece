import t from "tap";
import { parseAuthenticationConfiguration } from "./authentication-configuration.ts";

const RULES = { ownIssuers: ["https://own.example.com"], anonymousForbidden: undefined };
const HEAD = "apiVersion: apiserver.svc.io/v1beta1\nkind: AuthenticationConfiguration\n";

function issuerOf(more: object): string {
  const issuer = { url: "https://a.example.com", audiences: ["c"] };
  const whole = { issuer, claimMappings: { username: { claim: "sub", prefix: "" } }, ...more };
  return `${HEAD}jwt:\n- ${JSON.stringify(whole)}\n`;
}

t.test("parseAuthenticationConfiguration() reads issuers and anonymous access", async (t) => {
  const text = `${issuerOf({})}anonymous:\n  enabled: true\n  conditions:\n  - path: /livez\n`;
  const { issuers, anonymous } = parseAuthenticationConfiguration("a.yaml", text, RULES);
  t.match(issuers, [
    { url: "https://a.example.com", discoveryUrl: "https://a.example.com/.well-known/openid-configuration" },
  ]);
  t.same(anonymous, { enabled: true, paths: ["/livez"] });
  for (const apiVersion of ["apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"]) {
    const alias = `apiVersion: ${apiVersion}\nkind: AuthenticationConfiguration\njwt: []\n`;
    t.same(parseAuthenticationConfiguration("a.yaml", alias, RULES), { issuers: [], anonymous: undefined });
  }
});

t.test("parseAuthenticationConfiguration() rejects an invalid file with line and field", async (t) => {
  const issuer = { url: "https://a.example.com", audiences: ["c"] };
  const withMappings = (claimMappings: object) =>
    issuerOf({ claimMappings: { username: { claim: "sub", prefix: "" }, ...claimMappings } });
  const bad: readonly (readonly [string, RegExp])[] = [
    ["", /a.yaml: the file is empty/],
    ["{", /a.yaml: /],
    ["kind: Pod\napiVersion: v1", /a.yaml:1: expected apiVersion: apiserver.svc.io\/v1beta1 and kind: Auth/],
    [`${HEAD}jwt: 3`, /a.yaml:3: field jwt/],
    [`${HEAD}jwt: []\nmore: 1\n`, /a.yaml:4: unknown field more/],
    [`${HEAD}jwt: []\njwt: []\n`, /a.yaml:\d: field jwt is set twice/],
    [issuerOf({ issuer: {} }), /jwt\[0\]\.issuer\.url: Required value.*jwt\[0\]\.issuer\.audiences: Required value/],
    [
      issuerOf({ issuer: { ...issuer, url: "http://u:p@a.example.com?x#y" } }),
      /must be https.*username or password.*a query.*a fragment/,
    ],
    [
      issuerOf({ issuer: { ...issuer, url: "https://own.example.com" } }),
      /URL must not overlap with disallowed issuers: \[https:\/\/own/,
    ],
    [
      issuerOf({ issuer: { ...issuer, discoveryURL: "https://a.example.com/" } }),
      /discoveryURL must be different from URL/,
    ],
    [issuerOf({ issuer: { ...issuer, audiences: ["a", "a"] } }), /Duplicate value: "a".*must be MatchAny for multiple/],
    [issuerOf({ issuer: { ...issuer, audienceMatchPolicy: "All" } }), /must be empty or MatchAny for single audience/],
    [
      issuerOf({ issuer: { ...issuer, certificateAuthority: "x" } }),
      /certificateAuthority: Invalid value: "<omitted>"/,
    ],
    [issuerOf({ claimMappings: {} }), /username: Required value: claim or expression is required/],
    [
      withMappings({ username: { claim: "sub" } }),
      /username\.prefix: Required value: prefix is required when claim is set/,
    ],
    [withMappings({ username: { claim: "sub", expression: "'a'" } }), /claim and expression can't both be set/],
    [withMappings({ username: { expression: "claims.email" } }), /claims\.email_verified must be used/],
    [
      withMappings({ username: { expression: "claim.x" } }),
      /compilation failed: ERROR: <input>:1:1: undeclared reference/,
    ],
    [withMappings({ extra: [{ key: "x", valueExpression: "'a'" }] }), /must be a domain-prefixed path/],
    [withMappings({ extra: [{ key: "A.b/c", valueExpression: "'a'" }] }), /must be lowercase/],
    [withMappings({ extra: [{ key: "x.k8s.io/c", valueExpression: "'a'" }] }), /reserved for Kubernetes use/],
    [withMappings({ extra: [{ key: "a.b/c" }] }), /valueExpression: Required value/],
    [
      issuerOf({ claimValidationRules: [{ expression: "1" }] }),
      /expression: Invalid value: "1": must evaluate to bool/,
    ],
    [issuerOf({ claimValidationRules: [{}] }), /claimValidationRules\[0\]: Required value/],
    [issuerOf({ userValidationRules: [{ expression: "user.x == ''" }] }), /undefined field 'x'/],
    [
      `${issuerOf({})}- ${JSON.stringify({ issuer, claimMappings: { username: { claim: "a", prefix: "" } } })}\n`,
      /jwt\[1\]\.issuer\.url: Duplicate value/,
    ],
    [`${HEAD}jwt: []\nanonymous: {enabled: false, conditions: [{path: /a}]}\n`, /enabled should be set to true when/],
  ];
  for (const [text, message] of bad) {
    t.throws(() => parseAuthenticationConfiguration("a.yaml", text, RULES), { message }, String(message));
  }
  const rules = { ...RULES, anonymousForbidden: "--anonymous-auth is set" };
  t.throws(() => parseAuthenticationConfiguration("a.yaml", `${HEAD}jwt: []\nanonymous: {enabled: true}\n`, rules), {
    message: /a.yaml:4: anonymous: Forbidden: --anonymous-auth is set/,
  });
});
