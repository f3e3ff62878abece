import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { UserCredentials } from "../../client/kubeconfig/user-credentials.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { PluginConfiguration } from "../chain/factory.ts";
import { createWebhookCredentialSource } from "./configuration.ts";

function configuration(kubeConfigFile: string): PluginConfiguration {
  const value = { apiVersion: "apiserver.config.k8s.io/v1", kind: "WebhookAdmissionConfiguration", kubeConfigFile };
  return { value, locationOf: (path) => `f:${path}`, duplicates: [] };
}

const EXEC = "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: ./login}";
const ANSWER = { kind: "ExecCredential", apiVersion: "client.authentication.k8s.io/v1", status: { token: "made" } };

t.test("createWebhookCredentialSource() finds the user of a server by name and port, or by wildcard", async (t) => {
  const at = t.testdir({
    token: "first",
    login: `#!/bin/sh\necho '${JSON.stringify(ANSWER)}'\n`,
    users: `users:
- {name: "guard.default.svc", user: {token: own}}
- {name: "guard.default.svc:8443", user: {username: jo, password: x}}
- {name: "*.default.svc", user: {tokenFile: token}}
- {name: "*", user: {${EXEC}}}
`,
  });
  await chmod(join(at, "login"), 0o755);
  const clock = new FakeClock();
  using credentials = (await createWebhookCredentialSource(configuration(join(at, "users")), "Mutating", clock))!;
  const shown = async (hostPort: string): Promise<string | undefined> => {
    const found = credentials.for(hostPort);
    return found instanceof UserCredentials ? (await found.get()).authorization : found?.authorization;
  };
  t.equal(await shown("guard.default.svc:443"), "Bearer own");
  t.equal(await shown("guard.default.svc:8443"), `Basic ${Buffer.from("jo:x").toString("base64")}`);
  t.equal(await shown("other.default.svc:443"), "Bearer first");
  t.equal(await shown("webhooks.example.com:443"), "Bearer made");
  await writeFile(join(at, "token"), "second");
  await clock.advance(60_000);
  t.equal(await shown("other.default.svc:443"), "Bearer second", "tokens are rotated");
});

t.test("createWebhookCredentialSource() rejects an invalid file with an error in one sentence", async (t) => {
  const clock = new FakeClock();
  t.equal(await createWebhookCredentialSource(undefined, "Mutating", clock), undefined);
  t.equal(await createWebhookCredentialSource(configuration(""), "Mutating", clock), undefined);
  for (const [path, message] of [
    ["users", /^Cannot use f:kubeConfigFile: kubeConfigFile "users" must be an absolute path$/],
    ["/nowhere", /^Cannot use f:kubeConfigFile for Mutating: Cannot load \/nowhere: ENOENT/],
  ] as const) {
    await t.rejects(createWebhookCredentialSource(configuration(path), "Mutating", clock), { message });
  }
});
