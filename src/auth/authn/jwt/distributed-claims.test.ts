import t from "tap";
import { systemRandom } from "../../../std/crypto/random.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { startTestIssuer } from "../../../testing/auth/test-issuer.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { BearerToken } from "../token/bearer-token.ts";
import { compileIssuer } from "./compile-issuer.ts";
import { type Fetcher, fetcher } from "./fetcher.ts";
import { jwtAuthenticator } from "./jwt-authenticator.ts";

t.test("jwtAuthenticator() resolves distributed groups claims", async (t) => {
  const clock = new FakeClock(Date.now());
  await using provider = await startTestIssuer(() => clock.now());
  await using other = await startTestIssuer(() => clock.now());
  const { issuer } = compileIssuer(
    {
      issuer: { url: provider.url, audiences: ["client"] },
      claimMappings: { username: { claim: "sub", prefix: "" }, groups: { claim: "groups", prefix: "oidc:" } },
    },
    "jwt[0]",
    [],
  );
  // Both authorities have the same name, so each issuer needs its own fetcher.
  const to = (url: string) => {
    const ca = url.startsWith(other.url) ? other.ca : provider.ca;
    return fetcher({ ca, timeoutMs: 5_000, clock: systemClock });
  };
  const fetching: Fetcher = {
    fetchJson: (url) => to(url).fetchJson(url),
    fetchText: (url, bearer) => to(url).fetchText(url, bearer),
  };
  const options = { issuer: issuer!, audiences: ["api"], clock, random: systemRandom, ...fetching };
  const authenticate = jwtAuthenticator(options);
  const send = async (claims: Readonly<Record<string, unknown>>) =>
    (await authenticate(new BearerToken(provider.token(claims)), ["api"]))?.user.groups;
  const at = (path: string, url = provider.url) => ({
    _claim_names: { groups: "src1" },
    _claim_sources: { src1: { endpoint: `${url}${path}`, access_token: "sesame" } },
  });
  provider.serve("/groups", `${provider.token({ groups: ["a", "b"] })}\n`, "sesame");
  t.same(await send(at("/groups")), ["oidc:a", "oidc:b"]);
  other.serve("/groups", other.token({ groups: "all" }), "sesame");
  t.same(await send(at("/groups", other.url)), ["oidc:all"], "signed by another issuer");
  t.same(await send({ ...at("/groups"), groups: ["own"] }), ["oidc:own"], "a claim in the token takes precedence");
  t.equal(provider.requests.filter((path) => path === "/groups").length, 1);
  const nothing: readonly object[] = [
    {},
    { _claim_names: { others: "src1" }, _claim_sources: {} },
    { _claim_names: { groups: "src1" }, _claim_sources: { src1: { JWT: "a.b.c" } } },
  ];
  for (const claims of nothing) t.same(await send({ ...claims }), [], JSON.stringify(claims));
  provider.serve("/other", provider.token({}), "sesame");
  provider.serve("/late", provider.token({ groups: ["a"], exp: Math.floor(clock.now() / 1000) - 1 }), "sesame");
  provider.serve("/for-others", provider.token({ groups: ["a"], aud: "others" }), "sesame");
  provider.serve("/private", provider.token({ groups: ["a"] }), "another");
  provider.serve("/no-token", "what?", "sesame");
  provider.serve("/forged", other.token({ groups: ["a"], iss: provider.url }), "sesame");
  provider.serve("/plain", provider.token({ groups: ["a"], iss: "http://127.0.0.1:1" }), "sesame");
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
    [at("/private"), /while getting distributed claim "groups": Cannot get .*: the server responded with 401/],
    [at("/nowhere"), /the server responded with 404/],
    [at("/no-token"), /is not a JWT of an issuer/],
    [at("/forged"), /failed to verify signature/],
    [at("/plain"), /is not a JWT of an issuer at an https URL/],
    [at("", "file:///etc/passwd"), /while getting distributed claim/],
    [at("", "what?"), /it is not a URL/],
  ];
  for (const [claims, message] of bad) {
    await t.rejects(send({ ...claims }), { status: { code: 401 }, message }, JSON.stringify(claims));
  }
});
