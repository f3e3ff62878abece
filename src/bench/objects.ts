/** Sample objects of 1 to 3 KB. */
import { readFileSync } from "node:fs";

export interface Sample {
  readonly title: string;
  readonly plural: string;
  readonly kind: string;
  /** The body of a create request. */
  create(name: string): Readonly<Record<string, unknown>>;
}

export const collectionOf = ({ plural }: Sample): string => `/api/v1/namespaces/default/${plural}`;

const data = { text: "x".repeat(1000) };

export const configMap: Sample = {
  title: "ConfigMap of 1 KB",
  plural: "configmaps",
  kind: "ConfigMap",
  create: (name) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data }),
};

const webPod = JSON.parse(readFileSync(new URL("../api/core/pod/pod.bench.json", import.meta.url), "utf8"));
const { labels, annotations } = webPod.metadata;
const { nodeName: _, ...podSpec } = webPod.spec;

export const pod: Sample = {
  title: "Pod of 2.5 KB",
  plural: "pods",
  kind: "Pod",
  create: (name) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels, annotations },
    spec: { ...podSpec, serviceAccountName: "default" },
  }),
};
