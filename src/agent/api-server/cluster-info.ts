/** The connection file that a cluster publishes in the ConfigMap cluster-info, for machines that join. */
import * as z from "zod/mini";
import { parseYaml } from "../../schema/yaml/yaml.ts";

const kubeconfig = z.object({
  clusters: z.array(
    z.object({
      cluster: z.object({
        server: z.optional(z.string()),
        "certificate-authority-data": z.optional(z.string()),
      }),
    }),
  ),
});

export interface ClusterInfo {
  readonly server?: string | undefined;
  /** PEM of the CAs. */
  readonly ca?: string | undefined;
}

/** The first cluster of the file; empty for a file of another structure. */
export function parseClusterInfo(text: string): ClusterInfo {
  const [document] = parseYaml(text);
  const { server, "certificate-authority-data": data } =
    kubeconfig.safeParse(document?.value).data?.clusters[0]?.cluster ?? {};
  return { server, ca: data === undefined ? undefined : Buffer.from(data, "base64").toString("utf8") };
}
