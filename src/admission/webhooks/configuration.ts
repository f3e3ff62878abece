/** `WebhookAdmissionConfiguration`: how this server proves to webhooks who it is. */
import { isAbsolute } from "node:path";
import { loadUsers, type UserAccess } from "../../client/kubeconfig.ts";
import type { WebhookCredentials } from "../../client/webhook-client.ts";
import { object, optional, string } from "../../schema/define.ts";
import { type ConfigurationIdentity, decodeConfiguration } from "../control-file.ts";
import type { PluginConfiguration } from "../factory.ts";

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

export type CredentialsFor = (hostPort: string) => WebhookCredentials | undefined;

/** Rejects with one sentence for the operator. */
export async function webhookCredentials(
  configuration: PluginConfiguration | undefined,
  plugin: string,
): Promise<CredentialsFor | undefined> {
  if (configuration === undefined) return undefined;
  const { kubeConfigFile = "" } = decodeConfiguration(configuration, IDENTITY, schema);
  if (kubeConfigFile === "") return undefined;
  const at = configuration.at("kubeConfigFile");
  if (!isAbsolute(kubeConfigFile)) {
    throw new Error(`Cannot use ${at}: kubeConfigFile ${JSON.stringify(kubeConfigFile)} must be an absolute path`);
  }
  const users = await loadUsers(kubeConfigFile).catch((cause: unknown) => {
    throw new Error(`Cannot use ${at} for ${plugin}: ${(cause as Error).message}`, { cause });
  });
  return (hostPort) => {
    const user = userFor(hostPort, users);
    return user && credentialsOf(user);
  };
}

/** By its name, or else by a star in place of its first labels; with the port, and for 443 without it. */
function userFor(hostPort: string, users: ReadonlyMap<string, UserAccess>): UserAccess | undefined {
  const names = hostPort.endsWith(":443") ? [hostPort, hostPort.slice(0, -":443".length)] : [hostPort];
  for (const name of names) {
    const labels = name.split(".");
    const stars = labels.slice(1).map((_, i) => `*.${labels.slice(i + 1).join(".")}`);
    const found = [name, ...stars].find((one) => users.has(one));
    if (found !== undefined) return users.get(found);
  }
  return users.get("*");
}

function credentialsOf({ cert, key, token, username, password }: UserAccess): WebhookCredentials {
  const basic = username === undefined ? undefined : Buffer.from(`${username}:${password ?? ""}`).toString("base64");
  const authorization = token === undefined ? (basic === undefined ? undefined : `Basic ${basic}`) : `Bearer ${token}`;
  return { cert, key, authorization };
}
