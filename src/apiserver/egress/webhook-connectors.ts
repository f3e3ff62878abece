import type { FindWebhookConnector } from "../../client/webhook/webhook-client.ts";
import type { FindConnector } from "./egress-selector.ts";

/** Webhooks of services are in the cluster's network, those of URLs in that of the control plane, as in Kubernetes. */
export function webhookConnectors(egress: FindConnector | undefined): FindWebhookConnector | undefined {
  return egress && (({ service }) => egress(service === undefined ? "controlplane" : "cluster"));
}
