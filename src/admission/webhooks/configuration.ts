/** `WebhookAdmissionConfiguration`: the kubeconfig with the credentials that the API server presents to webhooks. */
import { isAbsolute } from "node:path";
import { UserCredentials } from "../../client/kubeconfig/user-credentials.ts";
import { loadKubeconfigUsers } from "../../client/kubeconfig/webhook-kubeconfig.ts";
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

export interface WebhookCredentialSource extends Disposable {
  for(hostPort: string): WebhookCredentials | undefined;
}

/** Rejects with an error in one sentence, for the operator. */
export async function createWebhookCredentialSource(
  configuration: PluginConfiguration | undefined,
  plugin: string,
  clock: Clock,
): Promise<WebhookCredentialSource | undefined> {
  if (configuration === undefined) return undefined;
  const { kubeConfigFile = "" } = decodeConfiguration(configuration, IDENTITY, schema);
  if (kubeConfigFile === "") return undefined;
  const location = configuration.locationOf("kubeConfigFile");
  if (!isAbsolute(kubeConfigFile)) {
    throw new Error(
      `Cannot use ${location}: kubeConfigFile ${JSON.stringify(kubeConfigFile)} must be an absolute path`,
    );
  }
  const users = await loadKubeconfigUsers(kubeConfigFile).catch((cause: unknown) => {
    throw new Error(`Cannot use ${location} for ${plugin}: ${(cause as Error).message}`, { cause });
  });
  const credentials = new Map([...users].map(([name, user]) => [name, new UserCredentials(user, clock)] as const));
  return {
    for: (hostPort) => findUser(hostPort, credentials),
    [Symbol.dispose]() {
      for (const each of credentials.values()) each[Symbol.dispose]();
    },
  };
}

/** Looks up the server name, then wildcards for its first labels; with the port, and for 443 also without it. */
function findUser<U>(hostPort: string, users: ReadonlyMap<string, U>): U | undefined {
  const names = hostPort.endsWith(":443") ? [hostPort, hostPort.slice(0, -":443".length)] : [hostPort];
  for (const name of names) {
    const labels = name.split(".");
    const wildcards = labels.slice(1).map((_, i) => `*.${labels.slice(i + 1).join(".")}`);
    const found = [name, ...wildcards].find((one) => users.has(one));
    if (found !== undefined) return users.get(found);
  }
  return users.get("*");
}
