import { createHmac } from "node:crypto";
import t from "tap";
import { systemRandom } from "../../../std/crypto/random.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { startTestIssuer } from "../../../testing/auth/test-issuer.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { BearerToken } from "../token/bearer-token.ts";
import type { JwtAuthenticator } from "./authentication-configuration-schema.ts";
import { type CompiledIssuer, compileIssuer } from "./compile-issuer.ts";
import { fetcher } from "./fetcher.ts";
import { jwtAuthenticator } from "./jwt-authenticator.ts";
import { userFromClaims } from "./user-of-claims.ts";

type Mappings = JwtAuthenticator["claimMappings"];
const SUB: Mappings = { username: { claim: "sub", prefix: "" } };

function compile(config: Partial<JwtAuthenticator> = {}, url = "https://issuer.example.com"): CompiledIssuer {
  const { issuer, errors } = compileIssuer(
    { claimMappings: SUB, ...config, issuer: { url, audiences: ["client"], ...config.issuer } },
    "jwt[0]",
    [],
  );
  if (issuer === undefined) throw new Error(JSON.stringify(errors));
  return issuer;
}

t.test("jwtAuthenticator() rejects tokens with an invalid signature, audience or validity", async (t) => {
  const clock = new FakeClock(Date.now());
  await using provider = await startTestIssuer(() => clock.now());
  const authenticate = jwtAuthenticator({
    issuer: compile({}, provider.url),
    audiences: ["api"],
    ...fetcher({ ca: provider.ca, timeoutMs: 5_000, clock: systemClock }),
    clock,
    random: systemRandom,
  });
  const send = (token: string, requested: readonly string[] = ["api"]) =>
    authenticate(new BearerToken(token), requested);
  const good = provider.token();
  t.match(await send(good), { user: { name: "jo", groups: [], uid: "", extra: {} }, audiences: ["api"] });
  for (const algorithm of ["RS512", "PS384", "ES256"] as const)
    t.ok(await send(provider.token({}, algorithm)), algorithm);
  t.equal(await send(good, ["vault"]), undefined, "another audience");
  t.equal(await send(provider.token({ iss: `${provider.url}/` })), undefined, "of another issuer");
  for (const none of ["", "a.b.c", "opaque", `${"x".repeat(50_000)}.y.z`]) t.equal(await send(none), undefined);
  const [head = "", body = "", tail = ""] = good.split(".");
  const now = Math.floor(clock.now() / 1000);
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const forge = (header: object, key: string): string => {
    const signed = `${encode(header)}.${body}`;
    return `${signed}.${createHmac("sha256", key).update(signed).digest("base64url")}`;
  };
  const bad: readonly (readonly [string, string, RegExp])[] = [
    ["none", `${encode({ alg: "none" })}.${body}.`, /malformed/],
    ["none with a tail", `${encode({ alg: "none" })}.${body}.${tail}`, /malformed/],
    ["a public key as a secret", forge({ alg: "HS256", kid: "rsa-1" }, provider.ca), /malformed/],
    ["a path for a key", forge({ alg: "RS256", kid: "../../dev/null" }, ""), /no matching keys/],
    ["a key of its own", forge({ alg: "RS256", jwk: {}, jku: provider.url, kid: "rsa-1" }, ""), /no matching keys/],
    ["one that must be understood", forge({ alg: "RS256", crit: ["b64"], b64: false }, ""), /malformed/],
    [
      "another payload",
      `${head}.${encode({ ...JSON.parse(Buffer.from(body, "base64url").toString()), sub: "root" })}.${tail}`,
      /no matching/,
    ],
    ["expired", provider.token({ exp: now - 1 }), /token is expired/],
    ["without an end", provider.token({ exp: undefined }), /token is expired/],
    ["an end that is text", provider.token({ exp: "9999999999" }), /token is expired/],
    ["not yet valid", provider.token({ nbf: now + 301 }), /before the nbf/],
    ["for another client", provider.token({ aud: ["other"] }), /expected audience in \["client"\] got \["other"\]/],
    ["without audience", provider.token({ aud: undefined }), /expected audience/],
    ["without a name", provider.token({ sub: "" }), /the username is empty/],
    ["a name that is no text", provider.token({ sub: { a: 1 } }), /parse username claims/],
  ];
  for (const [what, token, message] of bad) await t.rejects(async () => send(token), { message }, what);
  t.ok(await send(provider.token({ nbf: now + 299 })), "clocks differ");
});

t.test(
  "jwtAuthenticator() retries discovery with backoff if the issuer is unavailable or returns invalid documents",
  async (t) => {
    const clock = new FakeClock(Date.now());
    await using provider = await startTestIssuer(() => clock.now());
    const authenticate = jwtAuthenticator({
      issuer: compile({}, provider.url),
      audiences: ["api"],
      ...fetcher({ ca: provider.ca, timeoutMs: 5_000, clock: systemClock }),
      clock,
      random: systemRandom,
    });
    const send = () => authenticate(new BearerToken(provider.token()), ["api"]);
    for (const [lie, message] of [
      [{ issuer: "https://other.example.com" }, /issuer did not match/],
      [{ jwks_uri: "http://127.0.0.1/keys" }, /has no https URL in jwks_uri/],
      [{ jwks_uri: `${provider.url}/none` }, /the server responded with 404/],
    ] as const) {
      provider.overrideDiscovery(lie);
      await clock.advance(60_000);
      await t.rejects(async () => send(), { message });
    }
    const { length } = provider.requests;
    await t.rejects(async () => send(), { message: /not initialized/ });
    t.equal(provider.requests.length, length, "no retry before the backoff");
    provider.overrideDiscovery({});
    await clock.advance(60_000);
    t.ok(await send());
  },
);

t.test("userFromClaims() maps claims to users by name and by expression", async (t) => {
  const claims = {
    sub: "jo",
    email: "jo@example.com",
    email_verified: true,
    roles: ["a", "", "b"],
    team: { lead: true, name: "x" },
    n: 3,
  };
  const mapClaims = (claimMappings: Mappings, rules: Partial<JwtAuthenticator> = {}) =>
    userFromClaims(compile({ claimMappings, ...rules }), claims);
  t.same(
    mapClaims({
      username: { expression: "claims.email_verified ? claims.email : ''" },
      groups: { expression: "claims.roles + (claims.team.lead ? ['leads'] : [])" },
      uid: { expression: "string(claims.n)" },
      extra: [
        { key: "example.com/team", valueExpression: "claims.team.name" },
        { key: "example.com/none", valueExpression: "claims.?nothing.orValue('')" },
      ],
    }),
    { name: "jo@example.com", groups: ["a", "b", "leads"], uid: "3", extra: { "example.com/team": ["x"] } },
  );
  t.match(
    mapClaims({
      username: { claim: "sub", prefix: "x:" },
      groups: { claim: "roles", prefix: "g:" },
      uid: { claim: "email" },
    }),
    {
      name: "x:jo",
      groups: ["g:a", "g:", "g:b"],
      uid: "jo@example.com",
    },
  );
  t.match(mapClaims({ ...SUB, groups: { claim: "constructor", prefix: "" } }), { groups: [] });
  for (const [what, mappings, rules, message] of [
    ["no claim", { username: { claim: "toString", prefix: "" } }, {}, /parse username claims/],
    ["a list as username", { username: { expression: "claims.roles" } }, {}, /must return a string/],
    ["numbers as groups", { ...SUB, groups: { expression: "[claims.n]" } }, {}, /a string or a list of strings/],
    ["an unknown claim", { username: { expression: "claims.missing" } }, {}, /no such key: missing/],
    [
      "a bomb",
      {
        username: {
          expression: `claims.roles.map(a, claims.roles.map(b, ${"claims.roles.map(c, ".repeat(12)}'x'${")".repeat(12)}))[0]`,
        },
      },
      {},
      /error/,
    ],
    [
      "a claim rule",
      SUB,
      { claimValidationRules: [{ expression: "claims.n > 3", message: "more!" }] },
      /'claims.n > 3' failed: more!$/,
    ],
    [
      "a required claim",
      SUB,
      { claimValidationRules: [{ claim: "sub", requiredValue: "al" }] },
      /required claim sub value does not match/,
    ],
    [
      "a user rule",
      SUB,
      { userValidationRules: [{ expression: "!user.username.startsWith('j')" }] },
      /user info validation rule/,
    ],
  ] as const) {
    t.throws(() => mapClaims(mappings, rules as Partial<JwtAuthenticator>), { message }, what);
  }
});
