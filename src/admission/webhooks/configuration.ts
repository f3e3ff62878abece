/** `WebhookAdmissionConfiguration`: how this server proves to webhooks who it is. */
import { isAbsolute } from "node:path";
import { loadUsers } from "../../client/kubeconfig/webhook-kubeconfig.ts";
import { FreshCredentials } from "../../client/kubeconfig/credential-source.ts";
import type { WebhookCredentials } from "../../client/webhook/webhook-client.ts";
import { object, optional, string } from "../../schema/define.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type ConfigurationIdentity, decodeConfiguration } from "../chain/configuration.ts";
import type { PluginConfiguration } from "../chain/factory.ts";

const IDENTITY: ConfigurationIdentity = {
  group: "apiserver.config.k8s.io",
  versions: ["v1", "v1alpha1"],
  kinds: ["WebhookAdmissionConfiguration", "WebhookAdmission"],
};
const schema = object("apiserver.config.k8s.io/v1.WebhookAdmissionConfiguration", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  kubeConfigFile: optional(0, string),
});

export interface NamedCredentials extends Disposable {
  for(hostPort: string): WebhookCredentials | undefined;
}

/** Rejects with one sentence for the operator. */
export async function webhookCredentials(
  configuration: PluginConfiguration | undefined,
  plugin: string,
  clock: Clock,
): Promise<NamedCredentials | undefined> {
  if (configuration === undefined) return undefined;
  const { kubeConfigFile = "" } = decodeConfiguration(configuration, IDENTITY, schema);
  if (kubeConfigFile === "") return undefined;
  const at = configuration.locationOf("kubeConfigFile");
  if (!isAbsolute(kubeConfigFile)) {
    throw new Error(`Cannot use ${at}: kubeConfigFile ${JSON.stringify(kubeConfigFile)} must be an absolute path`);
  }
  const users = await loadUsers(kubeConfigFile).catch((cause: unknown) => {
    throw new Error(`Cannot use ${at} for ${plugin}: ${(cause as Error).message}`, { cause });
  });
  const credentials = new Map([...users].map(([name, user]) => [name, new FreshCredentials(user, clock)] as const));
  return {
    for: (hostPort) => userFor(hostPort, credentials),
    [Symbol.dispose]() {
      for (const each of credentials.values()) each[Symbol.dispose]();
    },
  };
}

/** By its name, or else by a star in place of its first labels; with the port, and for 443 without it. */
function userFor<U>(hostPort: string, users: ReadonlyMap<string, U>): U | undefined {
  const names = hostPort.endsWith(":443") ? [hostPort, hostPort.slice(0, -":443".length)] : [hostPort];
  for (const name of names) {
    const labels = name.split(".");
    const stars = labels.slice(1).map((_, i) => `*.${labels.slice(i + 1).join(".")}`);
    const found = [name, ...stars].find((one) => users.has(one));
    if (found !== undefined) return users.get(found);
  }
  return users.get("*");
}
