import { generateKeyPairSync } from "node:crypto";
import t from "tap";
import type { TokenRequest } from "../../api/authentication/token-request.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import { createTokenIssuer } from "../../auth/service-account/issuer.ts";
import { readSigningKey } from "../../auth/service-account/keys.ts";
import { type Fixture, fixture, rejectionStatus } from "../../testing/registry/registry-fixture.ts";
import { create } from "../create.ts";
import { requestToken, type TokenSettings } from "./token-request.ts";

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const key = readSigningKey("key", privateKey.export({ type: "pkcs8", format: "pem" }).toString());
const settings: TokenSettings = {
  issuer: createTokenIssuer("https://ids.example.com", async () => key),
  audiences: ["api"],
  maxSeconds: 0,
  extend: true,
};

async function setUp(f: Fixture): Promise<void> {
  const account = { metadata: { name: "till", namespace: "default" } };
  await create(f.registries.of(serviceAccountKind), f.scope(), account);
  const spec = { serviceAccountName: "till", containers: [{ name: "c", image: "i" }] };
  await create(f.registries.of(podKind), f.scope(), { metadata: { name: "web", namespace: "default" }, spec });
}

type RequestedSpec = Partial<NonNullable<TokenRequest["spec"]>>;

function request(f: Fixture, requested: RequestedSpec, more: Partial<TokenSettings> = {}, warnings: string[] = []) {
  const spec = { audiences: [], ...requested };
  const checks = {
    validate: () => [],
    annotate: () => {},
    warn: (texts: readonly string[]) => void warnings.push(...texts),
  };
  return requestToken(f.registries, { ...settings, ...more }, f.scope(), "till", { spec }, checks);
}

function claimsOf({ status }: TokenRequest): Record<string, unknown> {
  const [, payload = ""] = (status?.token ?? "").split(".");
  return JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as Record<string, unknown>;
}

t.test("requestToken() issues a token for the account and its bound object", async (t) => {
  await using f = fixture();
  await setUp(f);
  const plain = claimsOf(await request(f, { expirationSeconds: 600 }));
  t.match(plain, { aud: ["api"], iss: "https://ids.example.com", sub: "system:serviceaccount:default:till" });
  t.equal(Number(plain.exp) - Number(plain.iat), 600);
  const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "web" };
  const bound = await request(f, { expirationSeconds: 3607, boundObjectRef });
  t.match(claimsOf(bound), { "kubernetes.io": { pod: { name: "web" } } });
  t.equal(
    Number(claimsOf(bound).exp) - Number(claimsOf(bound).iat),
    31_536_000,
    "tokens of pods get an extended expiration",
  );
  const elsewhere = claimsOf(await request(f, { audiences: ["vault"], expirationSeconds: 3607, boundObjectRef }));
  t.equal(Number(elsewhere.exp) - Number(elsewhere.iat), 3607, "not for others");
});

t.test("requestToken() limits the expiration with a warning", async (t) => {
  await using f = fixture();
  await setUp(f);
  const warnings: string[] = [];
  const { spec } = await request(f, { expirationSeconds: 7200 }, { maxSeconds: 3600 }, warnings);
  t.equal(spec?.expirationSeconds, 3600);
  t.same(warnings, ["requested expiration of 7200 seconds shortened to 3600 seconds"]);
});

t.test("requestToken() rejects a bound object that is missing, has another uid or another account", async (t) => {
  await using f = fixture();
  await setUp(f);
  const spec = { serviceAccountName: "other", containers: [{ name: "c", image: "i" }] };
  await create(f.registries.of(podKind), f.scope(), { metadata: { name: "odd", namespace: "default" }, spec });
  const bound = (kind: string, name: string, uid?: string) =>
    rejectionStatus(
      request(f, { boundObjectRef: { apiVersion: "v1", kind, name, ...(uid === undefined ? {} : { uid }) } }),
    );
  t.match(await bound("Pod", "none"), { code: 404 });
  t.match(await bound("Pod", "web", "x"), { code: 409 });
  t.match(await bound("Pod", "odd"), { code: 400, message: /different serviceaccount name/ });
  t.match(await bound("ConfigMap", "m"), { code: 400, message: /cannot bind token to object of type/ });
  t.match(await bound("Pod", ""), { code: 400 });
});
