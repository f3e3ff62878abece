/** The ConfigMaps and Secrets that pods refer to, as keys of the `ObjectReader`. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { allContainers, podNamespace } from "../pods/pod-fields.ts";

export function findReferencedObjects(pods: Iterable<Pod>): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const pod of pods) {
    const add = (kind: "configMap" | "secret", name: string | undefined): void => {
      if (name !== undefined) keys.add(`${kind}/${podNamespace(pod)}/${name}`);
    };
    for (const { name } of pod.spec?.imagePullSecrets ?? []) add("secret", name);
    for (const volume of pod.spec?.volumes ?? []) {
      add("configMap", volume.configMap?.name);
      add("secret", volume.secret?.secretName);
      for (const source of volume.projected?.sources ?? []) {
        add("configMap", source.configMap?.name);
        add("secret", source.secret?.name);
      }
    }
    for (const { spec } of allContainers(pod)) {
      for (const from of spec.envFrom ?? []) {
        add("configMap", from.configMapRef?.name);
        add("secret", from.secretRef?.name);
      }
      for (const { valueFrom } of spec.env ?? []) {
        add("configMap", valueFrom?.configMapKeyRef?.name);
        add("secret", valueFrom?.secretKeyRef?.name);
      }
    }
  }
  return keys;
}
