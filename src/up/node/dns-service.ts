/**
 * The service `kube-system/kube-dns`, under which programs find the DNS of the cluster: it reserves the address, which
 * the node's agent serves itself. Service proxies leave it alone, because of its label.
 */
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Service } from "../../api/core/service/schema.ts";
import { isNotFound } from "../../api/status.ts";
import type { UserInfo } from "../../auth/user.ts";
import type { Client } from "../../client/client.ts";
import type { Logger } from "../../std/log/logger.ts";

export const dnsServiceUser: UserInfo = { name: "system:svc-up", uid: "", groups: ["system:masters"], extra: {} };

const SERVICE = { namespace: "kube-system", name: "kube-dns" } as const;
const PROXY_NAME = "service.kubernetes.io/service-proxy-name";
const PROXY = "svc-dns";
const DNS_PORT = 53;

function makeDnsService(address: string): Service {
  return {
    metadata: { ...SERVICE, labels: { "k8s-app": SERVICE.name, [PROXY_NAME]: PROXY } },
    spec: {
      type: "ClusterIP",
      clusterIP: address,
      ports: [
        { name: "dns", protocol: "UDP", port: DNS_PORT },
        { name: "dns-tcp", protocol: "TCP", port: DNS_PORT },
      ],
    },
  };
}

/**
 * Creates the service unless another one has its name, which may be that of a DNS server in pods. The first start after
 * a change of the address replaces it. Never rejects: names resolve without the service.
 */
export async function ensureDnsService(client: Client, address: string, log: Logger): Promise<void> {
  try {
    const found = await client.get(serviceKind, SERVICE).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (found !== undefined) {
      const isOwn = found.metadata?.labels?.[PROXY_NAME] === PROXY;
      if (!isOwn || found.spec?.clusterIP === address) return;
      await client.delete(serviceKind, SERVICE);
    }
    await client.create(serviceKind, makeDnsService(address));
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    log.warn("Cannot reserve the address of the DNS of the cluster by a service", { address, error: text });
  }
}
