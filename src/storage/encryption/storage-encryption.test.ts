import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { secretKind } from "../../api/core/secret/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { parseEncryptionConfiguration } from "./configuration.ts";
import { createTransformers } from "./encrypted-resources.ts";
import { StorageEncryption } from "./storage-encryption.ts";

const kinds = [clusterRoleKind, secretKind, serviceKind];
const SECRET = Buffer.alloc(32, 1).toString("base64");

function configuration(rules: readonly (readonly [resources: readonly string[], key: string | undefined])[]): string {
  const resources = rules.map(([names, key]) => ({
    resources: names,
    providers: [key === undefined ? { identity: {} } : { secretbox: { keys: [{ name: key, secret: SECRET }] } }],
  }));
  return JSON.stringify({ apiVersion: "apiserver.config.k8s.io/v1", kind: "EncryptionConfiguration", resources });
}

async function open(folder: string, text: string, reload = false) {
  const file = join(folder, "encryption.json");
  writeFileSync(file, text);
  const clock = new FakeClock();
  const deps = { prefix: "/registry", kinds, clock, log: silentLogger };
  const encryption = await StorageEncryption.open({ file, reload }, deps);
  const prefixOf = (key: string): string => {
    const value = encryption.transformerOf(key)?.encrypt(Buffer.from("x"), key);
    if (value === undefined) return "none";
    if (value instanceof Promise) return "later";
    return /^k8s:enc:secretbox:v1:(\w+):/.exec(Buffer.from(value).toString("latin1"))?.[1] ?? "plain";
  };
  return { file, clock, encryption, prefixOf };
}

t.test("the first rule for a resource, its group or everything decides", async (t) => {
  const rules = [
    [["secrets"], "k1"],
    [["*.rbac.authorization.svc.io"], "k2"],
    [["things.shop.example.com"], "k3"],
    [["services"], undefined],
    [["*.*"], "k4"],
  ] as const;
  const { prefixOf } = await open(t.testdir({}), configuration(rules));
  const rows: readonly (readonly [string, string])[] = [
    ["/registry/secrets/default/a", "k1"],
    ["/registry/clusterroles/view", "k2"],
    ["/registry/shop.example.com/things/default/t", "k3"],
    ["/registry/shop.example.com/others/default/t", "k4"],
    ["/registry/services/specs/default/web", "plain"],
    ["/other/secrets/default/a", "none"],
  ];
  for (const [key, expected] of rows) t.equal(prefixOf(key), expected, key);
});

t.test("a changed file is loaded; an invalid one leaves the configuration in use", async (t) => {
  const { file, clock, encryption, prefixOf } = await open(t.testdir({}), configuration([[["secrets"], "k1"]]), true);
  t.equal(prefixOf("/registry/secrets/default/a"), "k1");
  writeFileSync(file, configuration([[["secrets"], "k2"]]));
  await clock.advance(61_000);
  t.equal(prefixOf("/registry/secrets/default/a"), "k2");
  writeFileSync(file, "resources: [");
  await clock.advance(61_000);
  t.equal(prefixOf("/registry/secrets/default/a"), "k2");
  encryption[Symbol.dispose]();
  t.equal(clock.pending, 0);
});

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../shared", import.meta.url));
const oracle = join(shared, "oracles", "encryption-config");

function filesBelow(folder: string): readonly string[] {
  const entries = readdirSync(join(oracle, folder), { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(".yaml"))
    .map((entry) => join(entry.parentPath, entry.name));
}

/** The error, other than that plugins of KMS v1 are off. */
async function errorOf(path: string): Promise<string | undefined> {
  try {
    const deps = { kmsV1: false, clock: new FakeClock(), log: silentLogger };
    const configuration = parseEncryptionConfiguration(path, readFileSync(path, "utf8"));
    // No plugin of KMS v2 runs here.
    const resources = configuration.resources?.map((rule) => ({
      ...rule,
      providers: rule.providers?.map((each) => (each.kms?.apiVersion === "v2" ? { identity: {} } : each)),
    }));
    using _transformers = await createTransformers({ ...configuration, resources }, deps);
    return undefined;
  } catch (error) {
    const { message } = error as Error;
    return message.includes("KMSv1") ? undefined : message;
  }
}

t.test("configuration files of Kubernetes are accepted and refused as there", async (t) => {
  if (!existsSync(oracle)) {
    t.comment("Skipped: shared/ is not present");
    return;
  }
  for (const folder of ["valid-configs", "encryption-configs"]) {
    for (const path of filesBelow(folder)) t.equal(await errorOf(path), undefined, path.slice(oracle.length));
  }
  for (const path of filesBelow("invalid-configs")) {
    t.type(await errorOf(path), "string", path.slice(oracle.length));
  }
});
