import t from "tap";
import type { TokenRequest } from "../../../api/authentication/token-request.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { TokenManager } from "./token-manager.ts";

const pod: Pod = {
  metadata: { name: "web", namespace: "shop", uid: "uid-1" },
  spec: { containers: [{ name: "c" }], serviceAccountName: "seller" },
};
const HOUR_MS = 3_600_000;
const START = Date.UTC(2026, 0, 1);
const YEAR_MS = 365 * 24 * HOUR_MS;

function managed(respond?: (request: TokenRequest) => TokenRequest) {
  const clock = new FakeClock(START);
  const requests: { readonly namespace: string; readonly account: string; readonly request: TokenRequest }[] = [];
  /** The server's clock is right. */
  const source = {
    async requestToken(namespace: string, account: string, request: TokenRequest): Promise<TokenRequest> {
      requests.push({ namespace, account, request });
      if (respond !== undefined) return respond(request);
      const lifeMs = (request.spec.expirationSeconds ?? 0) * 1000;
      const expirationTimestamp = new Date(START + clock.monotonic() + lifeMs).toISOString();
      return { ...request, status: { token: `token-${requests.length}`, expirationTimestamp } };
    },
  };
  return { clock, requests, source, tokens: new TokenManager({ source, clock }) };
}

t.test("TokenManager.getToken() requests a token with the pod's options, bound to the pod", async (t) => {
  const { tokens, requests } = managed();
  await tokens.getToken(pod, { path: "token", audience: "vault", expirationSeconds: 600 });
  await tokens.getToken(pod, { path: "token" });
  const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "web", uid: "uid-1" };
  t.same(requests, [
    {
      namespace: "shop",
      account: "seller",
      request: { spec: { audiences: ["vault"], expirationSeconds: 600, boundObjectRef } },
    },
    {
      namespace: "shop",
      account: "seller",
      request: { spec: { audiences: [], expirationSeconds: 3607, boundObjectRef } },
    },
  ]);
});

t.test("TokenManager.getToken() renews a token after 80 % of its lifetime", async (t) => {
  const { tokens, clock } = managed();
  const wanted = { path: "token", expirationSeconds: 600 };
  t.equal(await tokens.getToken(pod, wanted), "token-1");
  t.equal(tokens.renewInMs("uid-1"), 480_000);
  await clock.advance(479_999);
  t.equal(await tokens.getToken(pod, wanted), "token-1");
  await clock.advance(1);
  t.equal(await tokens.getToken(pod, wanted), "token-2");
});

t.test("TokenManager.getToken() renews long-lived tokens daily", async (t) => {
  const { tokens } = managed();
  await tokens.getToken(pod, { path: "token", expirationSeconds: 7 * 24 * 3600 });
  t.equal(tokens.renewInMs("uid-1"), 24 * HOUR_MS);
});

t.test("TokenManager.getToken() returns a valid token while its renewal fails", async (t) => {
  const { tokens, clock, source } = managed();
  const wanted = { path: "token", expirationSeconds: 600 };
  await tokens.getToken(pod, wanted);
  source.requestToken = async () => {
    throw new Error("away");
  };
  await clock.advance(599_999);
  t.equal(await tokens.getToken(pod, wanted), "token-1");
  t.equal(tokens.renewInMs("uid-1"), 10_000, "no request before the retry interval");
  await clock.advance(1);
  await t.rejects(tokens.getToken(pod, wanted), { message: "failed to fetch token: away" });
});

for (const [how, offsetMs] of [
  ["back to 1970", -56 * YEAR_MS],
  ["a year ahead", YEAR_MS],
] as const) {
  t.test(`TokenManager.token() renews in time when the node's clock is set ${how}`, async (t) => {
    const { tokens, clock, requests } = managed();
    const wanted = { path: "token", expirationSeconds: 600 };
    await tokens.getToken(pod, wanted);
    clock.set(clock.now() + offsetMs);
    let late = 0;
    let longest = 0;
    for (let seconds = 1; seconds <= 1800; seconds++) {
      const before = requests.length;
      await clock.advance(1000);
      await tokens.getToken(pod, wanted);
      late = requests.length === before ? late + 1 : 0;
      longest = Math.max(longest, late);
    }
    t.ok(longest < 480, `before the token has expired: ${longest} s`);
    t.ok(requests.length <= 32, `once a minute at most: ${requests.length} times in half an hour`);
  });
}

t.test("TokenManager.getToken() soon replaces a new token that looks expired", async (t) => {
  const { tokens, clock } = managed((request) => {
    const expirationTimestamp = new Date(clock.now() - HOUR_MS).toISOString();
    return { ...request, status: { token: "kept", expirationTimestamp } };
  });
  t.equal(await tokens.getToken(pod, { path: "token" }), "kept");
  t.equal(tokens.renewInMs("uid-1"), 60_000);
});

t.test("TokenManager.getToken() rejects a response without a token", async (t) => {
  const { tokens } = managed((request) => request);
  await t.rejects(tokens.getToken(pod, { path: "token" }), /failed to fetch token: the response has no token/);
});

t.test("TokenManager.forget() drops a pod's tokens", async (t) => {
  const { tokens } = managed();
  await tokens.getToken(pod, { path: "token" });
  tokens.forget("uid-1");
  t.equal(tokens.renewInMs("uid-1"), Number.POSITIVE_INFINITY);
  t.equal(await tokens.getToken(pod, { path: "token" }), "token-2");
});
