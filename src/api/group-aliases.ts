/** The names of groups: `coordination.svc.io` and Kubernetes' alias `coordination.k8s.io`. */
import type { Kind } from "./kind.ts";
import { kubernetesGroup } from "./scheme.ts";

export interface GroupAliases {
  /** Whether groups are also served under Kubernetes' names. */
  readonly served: boolean;
  /** Whether discovery, OpenAPI and APIServices have both names. */
  readonly listed: boolean;
}

/** The names under which a group is served: the project's own, then Kubernetes'. */
export function groupNames(group: string, { served }: GroupAliases): readonly string[] {
  const kubernetesName = kubernetesGroup(group);
  return served && kubernetesName !== group ? [group, kubernetesName] : [group];
}

/**
 * The names of a kind's group in discovery, OpenAPI and APIServices: one, so that clients find each kind once. Built-in
 * groups have Kubernetes' name, groups of custom resources that of the definition.
 */
export function listedGroupNames(
  { group, definedGroup }: Pick<Kind, "group" | "definedGroup">,
  aliases: GroupAliases,
): readonly string[] {
  if (!aliases.served || aliases.listed) return groupNames(group, aliases);
  return [definedGroup ?? kubernetesGroup(group)];
}
