import t from "tap";
import { systemRandom } from "../../../std/crypto/random.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { testIssuer } from "../../../testing/auth/test-issuer.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { BearerToken } from "../token/bearer-token.ts";
import { compileIssuer } from "./compile-issuer.ts";
import { type Fetcher, fetcher } from "./fetcher.ts";
import { jwtAuthenticator } from "./jwt-authenticator.ts";

t.test("jwtAuthenticator() finds groups where the token says they are", async (t) => {
  const clock = new FakeClock(Date.now());
  await using provider = await testIssuer(() => clock.now());
  await using stranger = await testIssuer(() => clock.now());
  const { issuer } = compileIssuer(
    {
      issuer: { url: provider.url, audiences: ["client"] },
      claimMappings: { username: { claim: "sub", prefix: "" }, groups: { claim: "groups", prefix: "oidc:" } },
    },
    "jwt[0]",
    [],
  );
  // Their authorities have one name, so that each is asked with its own.
  const to = (url: string) => {
    const ca = url.startsWith(stranger.url) ? stranger.ca : provider.ca;
    return fetcher({ ca, timeoutMs: 5_000, clock: systemClock });
  };
  const fetching: Fetcher = {
    fetchJson: (url) => to(url).fetchJson(url),
    fetchText: (url, bearer) => to(url).fetchText(url, bearer),
  };
  const options = { issuer: issuer!, audiences: ["api"], clock, random: systemRandom, ...fetching };
  const authenticate = jwtAuthenticator(options);
  const ask = async (claims: Readonly<Record<string, unknown>>) =>
    (await authenticate(new BearerToken(provider.token(claims)), ["api"]))?.user.groups;
  const at = (path: string, url = provider.url) => ({
    _claim_names: { groups: "src1" },
    _claim_sources: { src1: { endpoint: `${url}${path}`, access_token: "sesame" } },
  });
  provider.offer("/groups", `${provider.token({ groups: ["a", "b"] })}\n`, "sesame");
  t.same(await ask(at("/groups")), ["oidc:a", "oidc:b"]);
  stranger.offer("/groups", stranger.token({ groups: "all" }), "sesame");
  t.same(await ask(at("/groups", stranger.url)), ["oidc:all"], "of another issuer, by its own keys");
  t.same(await ask({ ...at("/groups"), groups: ["own"] }), ["oidc:own"], "what the token holds counts");
  t.equal(provider.asked.filter((path) => path === "/groups").length, 1);
  const nothing: readonly object[] = [
    {},
    { _claim_names: { others: "src1" }, _claim_sources: {} },
    { _claim_names: { groups: "src1" }, _claim_sources: { src1: { JWT: "a.b.c" } } },
  ];
  for (const claims of nothing) t.same(await ask({ ...claims }), [], JSON.stringify(claims));
  provider.offer("/other", provider.token({}), "sesame");
  provider.offer("/late", provider.token({ groups: ["a"], exp: Math.floor(clock.now() / 1000) - 1 }), "sesame");
  provider.offer("/for-others", provider.token({ groups: ["a"], aud: "others" }), "sesame");
  provider.offer("/private", provider.token({ groups: ["a"] }), "another");
  provider.offer("/no-token", "what?", "sesame");
  provider.offer("/forged", stranger.token({ groups: ["a"], iss: provider.url }), "sesame");
  provider.offer("/plain", provider.token({ groups: ["a"], iss: "http://127.0.0.1:1" }), "sesame");
  const bad: readonly (readonly [object, RegExp])[] = [
    [{ _claim_names: "src1" }, /error parsing distributed claim names/],
    [{ _claim_names: { groups: 1 } }, /error parsing distributed claim names/],
    [{ _claim_names: { groups: "src1" } }, /no claim sources/],
    [{ _claim_names: { groups: "src1" }, _claim_sources: { src1: "x" } }, /could not parse claim sources/],
    [{ _claim_names: { groups: "src1" }, _claim_sources: { src1: { endpoint: 1 } } }, /could not parse claim sources/],
    [{ _claim_names: { groups: "src1" }, _claim_sources: {} }, /contained a source src1 missing in _claims_sources/],
    [at("/other"), /endpoint https:.*\/other did not contain claim: groups/],
    [at("/late"), /token is expired/],
    [at("/for-others"), /expected audience/],
    [at("/private"), /while getting distributed claim "groups": Cannot get .*: it answered 401/],
    [at("/nowhere"), /it answered 404/],
    [at("/no-token"), /is no token of an issuer/],
    [at("/forged"), /failed to verify signature/],
    [at("/plain"), /is no token of an issuer at an https URL/],
    [at("", "file:///etc/passwd"), /while getting distributed claim/],
    [at("", "what?"), /it is not a URL/],
  ];
  for (const [claims, message] of bad) {
    await t.rejects(ask({ ...claims }), { status: { code: 401 }, message }, JSON.stringify(claims));
  }
});
