/** An OpenID Connect issuer for tests, on loopback with TLS. */
import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { type Algorithm, signJws } from "../../auth/service-account/jws.ts";
import { bytesResponse, jsonResponse } from "../../http/respond.ts";
import { listen } from "../../http/server/server.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { makeServerCertificate } from "../http/test-certificates.ts";

export interface TestIssuer extends AsyncDisposable {
  readonly url: string;
  /** PEM of its certificate authority. */
  readonly ca: string;
  /** The requested paths. */
  readonly requests: string[];
  /** A token with valid claims for `client`, overridden by `claims`. */
  token(claims?: Readonly<Record<string, unknown>>, algorithm?: Algorithm): string;
  /** Replaces the keys. */
  rotate(): void;
  /** Serves a text at the path, for requests with this bearer token. */
  serve(path: string, text: string, bearer: string): void;
  /** Overrides members of the discovery document. */
  overrideDiscovery(members: Readonly<Record<string, unknown>>): void;
}

const DISCOVERY = "/.well-known/openid-configuration";

export async function startTestIssuer(now: () => number): Promise<TestIssuer> {
  const { ca, server } = await makeServerCertificate();
  const requests: string[] = [];
  let generation = 0;
  let keys: ReturnType<typeof newKeys>;
  const offers = new Map<string, { readonly text: string; readonly bearer: string }>();
  let more: Readonly<Record<string, unknown>> = {};
  const rotate = (): void => {
    keys = newKeys(++generation);
  };
  rotate();
  const listener = await listen({
    handler: async ({ path, headers }) => {
      requests.push(path);
      const offered = offers.get(path);
      if (offered !== undefined) {
        return headers.authorization === `Bearer ${offered.bearer}`
          ? bytesResponse(200, "application/jwt", Buffer.from(offered.text))
          : jsonResponse(401, {});
      }
      if (path === DISCOVERY) return jsonResponse(200, { issuer: url, jwks_uri: `${url}/keys`, ...more });
      return path === "/keys"
        ? jsonResponse(200, { keys: Object.values(keys).map(({ jwk }) => jwk) })
        : jsonResponse(404, {});
    },
    log: silentLogger,
    clock: systemClock,
    host: "127.0.0.1",
    tls: { cert: server.cert, key: server.key },
  });
  const url = `https://127.0.0.1:${listener.port}`;
  return {
    url,
    ca: ca.cert,
    requests: requests,
    token(claims = {}, algorithm = "RS256") {
      const seconds = Math.floor(now() / 1000);
      const { keyId, privateKey } = keys[algorithm.startsWith("ES") ? "ec" : "rsa"];
      const payload = { iss: url, aud: "client", sub: "jo", iat: seconds, exp: seconds + 600, ...claims };
      return signJws(payload, { algorithm, keyId, privateKey });
    },
    rotate,
    serve: (path, text, bearer) => void offers.set(path, { text, bearer }),
    overrideDiscovery(members) {
      more = members;
    },
    [Symbol.asyncDispose]: () => listener.close(),
  };
}

function newKeys(generation: number) {
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const ec = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey;
  return { rsa: keyOf(`rsa-${generation}`, rsa), ec: keyOf(`ec-${generation}`, ec) };
}

function keyOf(keyId: string, privateKey: KeyObject) {
  const jwk = { ...createPublicKey(privateKey).export({ format: "jwk" }), kid: keyId, use: "sig" };
  return { keyId, privateKey, jwk };
}
