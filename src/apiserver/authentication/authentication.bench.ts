/** Run by `make bench`: prints one JSON line for each authenticator with the cost of a cached user. */
import type { ApiObject } from "../../api/kind.ts";
import type { Authenticator, Credentials } from "../../auth/user.ts";
import { benchCredentials, copiesOf } from "../../bench/credentials.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { openAuthenticators } from "./authenticators.ts";

const CALLS = 100_000;

await using known = await benchCredentials();
await using identities = await openAuthenticators(known.settings, {
  clock: systemClock,
  random: systemRandom,
  log: silentLogger,
  findBoundObject: ({ name, uid }): ApiObject => ({ metadata: { name, uid: uid ?? "" } }),
});
const now = Math.floor(Date.now() / 1000);
const account = await identities.serviceAccounts.issuer.issue({
  id: "1",
  audiences: identities.serviceAccounts.audiences,
  now,
  expires: now + 3600,
  namespace: "shop",
  account: { name: "till", uid: "1" },
  pod: { name: "web", uid: "2" },
  node: { name: "n1", uid: "3" },
});
const none: Credentials = { certificates: [] };
const { headers } = known;
const certificates = known.certificates.jo;
const bearer = (token: string): readonly Credentials[] =>
  copiesOf(`Bearer ${token}`).map((authorization) => ({ ...none, authorization }));
const ways: Readonly<Record<string, readonly Credentials[]>> = {
  "client certificate": [{ certificates, headerValues: () => [], headerNames: () => [] }],
  "request headers": [
    {
      certificates,
      headerValues: (name) => (headers[name] === undefined ? [] : [headers[name]]),
      headerNames: () => Object.keys(headers),
    },
  ],
  "token of a file": bearer(known.tokens.file),
  "token of a component": bearer(identities.loopbackToken({ name: "c", uid: "", groups: [], extra: {} })),
  "token of a pod": bearer(account),
  "ID token": bearer(known.tokens.idToken),
  anonymous: [none],
};
for (const [way, credentials] of Object.entries(ways)) {
  const us = await cpuUs(identities.authenticate, credentials);
  process.stdout.write(`${JSON.stringify({ authenticating: way, us: Number(us.toFixed(2)) })}\n`);
}

/** The best of five rounds, after one to warm up. */
async function cpuUs(authenticate: Authenticator, credentials: readonly Credentials[]): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 6; round++) {
    const before = process.cpuUsage();
    for (let call = 0; call < CALLS; call++) await authenticate(credentials[call % credentials.length]!);
    const { user, system } = process.cpuUsage(before);
    if (round > 0) best = Math.min(best, (user + system) / CALLS);
  }
  return best;
}
