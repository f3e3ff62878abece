/** The npm package `oidc-provider` as the issuer, on loopback. */
import { generateKeyPairSync } from "node:crypto";
import type { RequestListener } from "node:http";
import { createServer, request, type Server } from "node:https";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import t from "tap";
import { systemRandom } from "../../../std/crypto/random.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { makeServerCertificate } from "../../../testing/http/test-certificates.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { BearerToken } from "../token/bearer-token.ts";
import { compileIssuer } from "./compile-issuer.ts";
import { fetcher } from "./fetcher.ts";
import { jwtAuthenticator } from "./jwt-authenticator.ts";

/** The package has no types. */
interface Package {
  readonly Provider: new (url: string, settings: object) => { callback(): RequestListener };
}

const { Provider } = createRequire(import.meta.url)("oidc-provider") as Package;
const { ca, server: pair } = await makeServerCertificate();

interface Issuer extends AsyncDisposable {
  readonly url: string;
  /** Generates new keys. */
  restart(): void;
  token(): Promise<string>;
}

async function startIssuer(algorithm: string): Promise<Issuer> {
  let listener: RequestListener = () => {};
  const server: Server = createServer({ cert: pair.cert, key: pair.key }, (...both) => listener(...both));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const restart = (): void => {
    listener = provider(url, algorithm).callback();
  };
  restart();
  return {
    url,
    restart,
    async token() {
      const body = new URLSearchParams({ grant_type: "client_credentials", resource: "https://cluster.example.com" });
      const headers = { authorization: `Basic ${Buffer.from("robot:secret").toString("base64")}` };
      const answered = await post(`${url}/token`, String(body), headers);
      return (answered as { readonly access_token: string }).access_token;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function provider(url: string, algorithm: string): { callback(): RequestListener } {
  const { privateKey } = algorithm.startsWith("ES")
    ? generateKeyPairSync("ec", { namedCurve: "prime256v1" })
    : generateKeyPairSync("rsa", { modulusLength: 2048 });
  const resource = {
    scope: "",
    audience: "cluster",
    accessTokenTTL: 600,
    accessTokenFormat: "jwt",
    jwt: { sign: { alg: algorithm } },
  };
  return new Provider(url, {
    clients: [
      {
        client_id: "robot",
        client_secret: "secret",
        id_token_signed_response_alg: algorithm,
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      },
    ],
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), use: "sig" }] },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: { enabled: true, getResourceServerInfo: () => resource },
    },
    cookies: { keys: ["unused"] },
  });
}

async function post(url: string, body: string, headers: Readonly<Record<string, string>>): Promise<unknown> {
  return await new Promise((resolve, reject) => {
    const type = { "content-type": "application/x-www-form-urlencoded" };
    const sent = request(url, { method: "POST", ca: ca.cert, headers: { ...type, ...headers } }, (answer) => {
      resolve(json(answer));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

for (const algorithm of ["RS256", "PS256", "ES256"]) {
  t.test(
    `jwtAuthenticator() accepts tokens of oidc-provider signed with ${algorithm}, also after key rotation`,
    async (t) => {
      await using provider = await startIssuer(algorithm);
      const clock = new FakeClock(Date.now());
      const { issuer } = compileIssuer(
        {
          issuer: { url: provider.url, audiences: ["cluster"], certificateAuthority: ca.cert },
          claimMappings: { username: { expression: "'robots:' + claims.sub" } },
        },
        "jwt[0]",
        [],
      );
      const fetched: string[] = [];
      const fetching = fetcher({ ca: ca.cert, timeoutMs: 5_000, clock: systemClock });
      const authenticate = jwtAuthenticator({
        issuer: issuer!,
        audiences: ["api"],
        ...fetching,
        fetchJson: (url) => {
          fetched.push(url);
          return fetching.fetchJson(url);
        },
        clock,
        random: systemRandom,
      });
      const send = (token: string) => authenticate(new BearerToken(token), ["api"]);
      const token = await provider.token();
      t.match(await send(token), { user: { name: "robots:robot" }, audiences: ["api"] });
      await send(token);
      t.equal(fetched.length, 2, "discovery and keys, once");
      provider.restart();
      const next = await provider.token();
      await t.rejects(async () => send(next), { message: /no matching keys/ }, "the last fetch was recent");
      await clock.advance(6_000);
      t.match(await send(next), { user: { name: "robots:robot" } });
      await t.rejects(async () => send(token), { message: /no matching keys/ }, "the old keys are gone");
      await clock.advance(3_600_000);
      await t.rejects(async () => send(next), { message: "oidc: verify token: token is expired" });
    },
  );
}
