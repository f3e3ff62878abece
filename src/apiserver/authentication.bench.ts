/** Run by `make bench`: one JSON line for each way to prove who one is, with what it costs for somebody seen before. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApiObject } from "../api/kind.ts";
import { testIssuer } from "../auth/authn/jwt/test-issuer.ts";
import type { Authenticator, Credentials } from "../auth/user.ts";
import { CLIENT_AUTH, makeCertificate } from "../http/test-certificates.ts";
import { systemClock } from "../std/clock.ts";
import { silentLogger } from "../std/log.ts";
import { systemRandom } from "../std/random.ts";
import { defaultConfig } from "./config.ts";
import { identitiesOf } from "./identities.ts";

const CALLS = 100_000;
/** Node hands out a new text with every request: looking one up for the first time costs more. */
const TEXTS = 256;

const directory = await mkdtemp(join(tmpdir(), "svc-bench-"));
try {
  await using issuer = await testIssuer(() => Date.now());
  const ca = await makeCertificate({ subject: [{ CN: ["ca"] }], authority: {} });
  const client = await makeCertificate({ subject: [{ CN: ["jo"] }], issuer: ca, usages: [CLIENT_AUTH] });
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(directory, name), text);
    return join(directory, name);
  };
  const headers = { "x-remote-user": "jo", "x-remote-group": "a" } as Readonly<Record<string, string>>;
  await using identities = await identitiesOf(
    {
      ...defaultConfig.authentication,
      clientCaFile: await file("ca.crt", ca.cert),
      tokenFile: await file("tokens", "sesame,ali,1\n"),
      requestHeader: {
        caFile: await file("proxies.crt", ca.cert),
        allowedNames: ["jo"],
        usernames: ["X-Remote-User"],
        groups: ["X-Remote-Group"],
        uids: [],
        extraPrefixes: ["X-Remote-Extra-"],
      },
      oidc: {
        issuerUrl: issuer.url,
        clientId: "client",
        caFile: await file("issuer.crt", issuer.ca),
        usernameClaim: "sub",
        usernamePrefix: "",
        groupsClaim: "",
        groupsPrefix: "",
        requiredClaims: {},
        signingAlgorithms: ["RS256"],
      },
    },
    {
      clock: systemClock,
      random: systemRandom,
      log: silentLogger,
      find: ({ name, uid }): ApiObject => ({ metadata: { name, uid: uid ?? "" } }),
    },
  );
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
  const certificates = [client.der];
  const bearer = (token: string): readonly Credentials[] =>
    Array.from({ length: TEXTS }, () => ({
      ...none,
      authorization: Buffer.from(`Bearer ${token}`).toString("latin1"),
    }));
  const ways: Readonly<Record<string, readonly Credentials[]>> = {
    "client certificate": [{ certificates, headerValues: () => [], headerNames: () => [] }],
    "request headers": [
      {
        certificates,
        headerValues: (name) => (headers[name] === undefined ? [] : [headers[name]]),
        headerNames: () => Object.keys(headers),
      },
    ],
    "token of a file": bearer("sesame"),
    "token of a component": bearer(identities.loopbackToken({ name: "c", uid: "", groups: [], extra: {} })),
    "token of a pod": bearer(account),
    "identity token": bearer(issuer.token()),
    nobody: [none],
  };
  for (const [way, credentials] of Object.entries(ways)) {
    const us = await cpuUs(identities.authenticate, credentials);
    process.stdout.write(`${JSON.stringify({ authenticating: way, us: Number(us.toFixed(2)) })}\n`);
  }
} finally {
  await rm(directory, { recursive: true, force: true });
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
