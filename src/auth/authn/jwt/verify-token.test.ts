import { generateKeyPairSync } from "node:crypto";
import t from "tap";
import { systemRandom } from "../../../std/crypto/random.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { TurnMeter } from "../../../testing/std/turn-meter.ts";
import { signJws } from "../../service-account/jws.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import { verifyToken } from "./verify-token.ts";

const issuerUrl = "https://issuer.example.com";
const NOW = 1_800_000_000;

function newKey() {
  return generateKeyPairSync("ec", { namedCurve: "P-521" });
}

t.test("verifyToken() tries the largest key set in short turns, and each key once", async (t) => {
  const published = newKey();
  const jwk = published.publicKey.export({ format: "jwk" });
  const clock = new FakeClock();
  const fetch = async (url: string): Promise<unknown> =>
    url.endsWith("/keys") ? { keys: Array(200).fill(jwk) } : { issuer: issuerUrl, jwks_uri: `${issuerUrl}/keys` };
  const keys = new IssuerKeys({ issuerUrl, discoveryUrl: issuerUrl, fetch, clock, random: systemRandom });
  const send = (privateKey: ReturnType<typeof newKey>["privateKey"]) => {
    const payload = { iss: issuerUrl, aud: "client", exp: NOW + 60 };
    const token = signJws(payload, { algorithm: "ES512", keyId: "", privateKey });
    return verifyToken(token, { audiences: ["client"], algorithms: ["ES512"] }, keys, NOW);
  };
  t.match(await send(published.privateKey), { aud: "client" });
  const { privateKey } = newKey();
  using meter = new TurnMeter();
  const cost = async (): Promise<number> => {
    const began = process.cpuUsage();
    await t.rejects(send(privateKey), { message: /no matching keys/ });
    return process.cpuUsage(began).user / 1000;
  };
  meter.take();
  const first = await cost();
  // At once, all 128 keys took 350 ms.
  const ms = meter.take();
  t.ok(ms < 100, `${Math.round(ms)} ms`);
  await clock.advance(10_000);
  const withNewKeys = await cost();
  t.ok(first < 0.8 * withNewKeys, `${Math.round(first)} ms, and ${Math.round(withNewKeys)} ms with keys fetched again`);
});
