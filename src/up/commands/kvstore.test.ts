import t from "tap";
import { invokeCommand } from "../../flags/commands.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { encryptedObject } from "../../storage/encryption/kms/protocol.ts";
import { openStore } from "../../storage/open.ts";
import { runKvstoreCommand } from "./kvstore.ts";
import { kvstoreProgram } from "./kvstore-flags.ts";

async function answer(...argv: readonly string[]): Promise<string> {
  const invocation = await invokeCommand(kvstoreProgram, argv);
  if (invocation.kind === "exit") throw new Error(invocation.stderr);
  return await runKvstoreCommand(invocation);
}

const kms = (keyID: string): Buffer =>
  Buffer.concat([
    Buffer.from("k8s:enc:kms:v2:plugin:"),
    encodeProtobuf(encryptedObject, { keyID, encryptedData: Buffer.of(1), encryptedDEKSource: Buffer.of(2) }),
  ]);

t.test("svc kvstore encrypt-status counts values by provider and key", async (t) => {
  const url = `level://${t.testdir()}`;
  const values: Readonly<Record<string, string | Buffer>> = {
    "secrets/default/a": "k8s:enc:aescbc:v1:k1:xxx",
    "secrets/default/b": "k8s:enc:aescbc:v1:k2:xxx",
    "secrets/default/c": "k8s:enc:aescbc:v1:k2:xxx",
    "secrets/default/d": kms("key-1"),
    "secrets/default/e": kms("key-\u001b[2J"),
    "secrets/default/f": "k8s:enc:kms:v1:old:xxx",
    "secrets/default/g": "k8s:enc:kms:v2:plugin:garbage",
    "secrets/default/h": "k8s:enc:rot13:v1:k:xxx",
    "clusterroles/view": "plain",
    "shop.example.com/things/default/t": "k8s:enc:secretbox:v1:k3:xxx",
    "ranges/serviceips": "plain",
  };
  {
    await using store = await openStore({
      urls: [url],
      clock: systemClock,
      log: silentLogger,
      compactionIntervalMs: 0,
    });
    for (const [key, value] of Object.entries(values)) await store.create(`/registry/${key}`, Buffer.from(value));
    await t.rejects(answer("encrypt-status", `--kvstore-servers=${url}`), {
      message: /it is in use: stop the API server/,
    });
  }
  const text = await answer("encrypt-status", `--kvstore-servers=${url}`);
  const lines = text.split("\n").map((line) => line.replace(/ {2,}/g, "|"));
  t.same(lines, [
    "RESOURCE|PROVIDER|KEY|KEY ID|VALUES",
    "(other)|identity|-|-|1",
    "clusterroles.rbac.authorization.k8s.io|identity|-|-|1",
    "secrets|aescbc|k1|-|1",
    "secrets|aescbc|k2|-|2",
    "secrets|kms v1|old|-|1",
    "secrets|kms v2|plugin|-|1",
    "secrets|kms v2|plugin|key-\\u001b[2J|1",
    "secrets|kms v2|plugin|key-1|1",
    "secrets|unknown|-|-|1",
    "things.shop.example.com|secretbox|k3|-|1",
    "",
    "11 values: 9 encrypted, 2 in plain text",
    "",
  ]);
  const json = JSON.parse(await answer("encrypt-status", `--kvstore-servers=${url}`, "--output=json"));
  t.same(json[2], { resource: "secrets", provider: "aescbc", key: "k1", values: 1 });
});

t.test("svc kvstore explains what is wrong", async (t) => {
  const nowhere = `level://${t.testdir()}/none`;
  await t.rejects(answer("encrypt-status", `--kvstore-servers=${nowhere}`), { message: /there is no such directory/ });
  await t.rejects(answer("encrypt-status", "--kvstore-servers=memory://"), { message: /expected level:\/\/\/PATH/ });
  await t.rejects(answer("encrypt-state"), { message: /did you mean encrypt-status/ });
});
