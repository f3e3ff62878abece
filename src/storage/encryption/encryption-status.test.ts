import t from "tap";
import { secretKind } from "../../api/core/secret/kind.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { createMemoryStore } from "../memory.ts";
import { countEncryption } from "./encryption-status.ts";

t.test("countEncryption() counts values by resource, provider and key, without any key", async (t) => {
  await using store = createMemoryStore({ clock: new FakeClock(), log: silentLogger });
  const values: Readonly<Record<string, string>> = {
    "secrets/default/a": "k8s:enc:secretbox:v1:k1:x",
    "secrets/default/b": "k8s:enc:secretbox:v1:k1:x",
    "secrets/default/c": "plain",
    "secrets/default/d": "k8s:enc:",
    "secrets/default/e": "k8s:enc:kms:v2:p:",
  };
  for (const [key, value] of Object.entries(values)) await store.create(`/registry/${key}`, Buffer.from(value));
  await store.create("/other/secrets/default/a", Buffer.from("not below the prefix"));
  const resource = "secrets";
  t.same(await countEncryption(store, "/registry", [secretKind]), [
    { resource, provider: "identity", key: "", values: 1 },
    { resource, provider: "kms v2", key: "p", keyId: "", values: 1 },
    { resource, provider: "secretbox", key: "k1", values: 2 },
    { resource, provider: "unknown", key: "", values: 1 },
  ]);
});
