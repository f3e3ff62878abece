/** Effects of the flags of encryption at rest. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Test } from "tap";
import type { Effect, Name, startServer } from "./support.ts";

/** Writes a configuration whose keys have these names, and returns the path of the file. */
export function writeConfiguration(file: string, ...names: readonly string[]): string {
  const keys = names.map((name) => ({ name, secret: Buffer.alloc(32, name).toString("base64") }));
  return writeFor(file, [{ secretbox: { keys } }, { identity: {} }]);
}

function writeFor(file: string, providers: readonly object[]): string {
  const resources = [{ resources: ["secrets"], providers }];
  writeFileSync(
    file,
    JSON.stringify({ apiVersion: "apiserver.svc.io/v1", kind: "EncryptionConfiguration", resources }),
  );
  return file;
}

/** Writes a configuration with these providers for secrets, and returns the path of the file. */
export function writeProviders(t: Test, providers: readonly object[]): string {
  return writeFor(temporaryFile(t), providers);
}

export function temporaryFile(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-encryption-"));
  t.teardown(() => rmSync(folder, { recursive: true }));
  return join(folder, "encryption.json");
}

export function encryptionEffects(start: typeof startServer): Partial<Record<Name, Effect>> {
  const createSecret = async (server: Awaited<ReturnType<typeof start>>, name: string): Promise<string> => {
    const body = { metadata: { name }, stringData: { password: "sesame" } };
    await server.send("POST /api/v1/namespaces/default/secrets", body);
    const written = server.writes.findLast(({ key }) => key.endsWith(`/${name}`));
    return Buffer.from(written?.value ?? []).toString("latin1");
  };
  return {
    "encryption-provider-config": async (t) => {
      await using server = await start({ "encryption-provider-config": writeConfiguration(temporaryFile(t), "k1") });
      const stored = await createSecret(server, "a");
      t.match(stored, /^k8s:enc:secretbox:v1:k1:/);
      t.notOk(stored.includes("sesame"));
    },
    "encryption-provider-config-automatic-reload": async (t) => {
      const file = writeConfiguration(temporaryFile(t), "k1");
      await using server = await start({
        "encryption-provider-config": file,
        "encryption-provider-config-automatic-reload": "true",
      });
      t.match(await createSecret(server, "a"), /^k8s:enc:secretbox:v1:k1:/);
      writeConfiguration(file, "k2");
      let count = 0;
      await server.until("the new key is used", async () =>
        (await createSecret(server, `b${count++}`)).startsWith("k8s:enc:secretbox:v1:k2:"),
      );
    },
  };
}
