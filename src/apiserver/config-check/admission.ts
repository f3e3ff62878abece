/** Configurations of admission plugins: parts of an AdmissionConfiguration, or files that it names. */
import type { PluginConfiguration } from "../../admission/chain/factory.ts";
import { eventRateLimit } from "../../admission/plugins/event-rate-limit/event-rate-limit.ts";
import { readImagePolicy } from "../../admission/plugins/image-policy-webhook/configuration.ts";
import { readPodSecurityOptions } from "../../admission/plugins/pod-security/configuration.ts";
import { podTolerationRestriction } from "../../admission/plugins/pod-toleration-restriction/pod-toleration-restriction.ts";
import { readLimitedResources } from "../../admission/plugins/resource-quota/configuration.ts";
import { createWebhookCredentialSource } from "../../admission/webhooks/configuration.ts";
import { loadWebhookKubeconfig } from "../../client/kubeconfig/webhook-kubeconfig.ts";
import { systemClock as clock } from "../../std/time/clock.ts";

type Check = (configuration: PluginConfiguration) => unknown;

const checkWebhookCredentials =
  (plugin: string): Check =>
  async (configuration) => {
    using _credentials = await createWebhookCredentialSource(configuration, plugin, clock);
  };

/** Throws an error in one sentence for an invalid configuration. */
export const pluginChecks: Readonly<Record<string, Check>> = {
  EventRateLimit: (configuration) => eventRateLimit({ clock, configuration }),
  ImagePolicyWebhook: async (configuration) => {
    const { kubeConfigFile } = readImagePolicy(configuration);
    await loadWebhookKubeconfig(kubeConfigFile);
  },
  MutatingAdmissionWebhook: checkWebhookCredentials("MutatingAdmissionWebhook"),
  PodSecurity: readPodSecurityOptions,
  // The reader is used by requests only.
  PodTolerationRestriction: (configuration) => podTolerationRestriction({ reader: {} as never, configuration }),
  ResourceQuota: readLimitedResources,
  ValidatingAdmissionWebhook: checkWebhookCredentials("ValidatingAdmissionWebhook"),
};
