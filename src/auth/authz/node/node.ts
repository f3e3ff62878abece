import { svcGroup } from "../../../api/scheme.ts";
import {
  type Attributes,
  type Authorization,
  type Authorizer,
  NODE_USER_PREFIX,
  NODES,
  type UserInfo,
} from "../../user.ts";
import { bootstrapRules } from "../rbac/bootstrap-policy/policy.ts";
import type { NodeGraph } from "./node-graph.ts";
import { ruleAllows } from "../rbac/rbac.ts";

const LEASE_NAMESPACE = "kube-node-lease";

export interface NodeAuthorizerOptions {
  /** The gate `AuthorizeNodeWithSelectors`: true when absent. */
  readonly selectors?: boolean | undefined;
  /** The gate `SvcletServiceAccountTokenForCredentialProviders`: nodes read the accounts of their pods. */
  readonly accounts?: boolean | undefined;
}

/**
 * `--authorization-mode=Node`: a node (user `system:node:NAME` in group `system:nodes`) may do what the role
 * `system:node` says, but only with its own lease and what the pods bound to it refer to. With `selectors` it reads
 * its own Node object and pods only: what it lists and watches of these must be selected by its name.
 */
export function nodeAuthorizer(
  graph: NodeGraph,
  { selectors = true, accounts = false }: NodeAuthorizerOptions = {},
): Authorizer {
  const rules = accounts ? [...NODE_RULES, ...ACCOUNT_RULES] : NODE_RULES;
  return {
    authorize: async (attributes) => {
      const node = nodeOf(attributes.user);
      if (node === undefined) return abstain("");
      if (node === "") return abstain(`unknown node for user ${JSON.stringify(attributes.user.name)}`);
      const limited = attributes.isResourceRequest ? limits[resourceOf(attributes)] : undefined;
      const refusal = limited?.({ node, attributes, graph, selectors, accounts });
      if (refusal !== undefined) return abstain(refusal);
      return rules.some((rule) => ruleAllows(rule, attributes)) ? { decision: "allow", reason: "" } : abstain("");
    },
    rulesFor(user) {
      if (nodeOf(user) === undefined) return { rules: [], incomplete: false };
      return { rules: [], incomplete: true, error: "node authorizer does not support user rule resolution" };
    },
  };
}

const NODE_RULES = bootstrapRules("system:node");
const ACCOUNT_RULES = [{ verbs: ["get"], apiGroups: [""], resources: ["serviceaccounts"] }];

interface Question {
  readonly node: string;
  readonly attributes: Attributes;
  readonly graph: NodeGraph;
  readonly selectors: boolean;
  readonly accounts: boolean;
}

/** Why not, in Kubernetes' words; undefined when the role's rules may decide. Empty when there is no more to say. */
type Limit = (question: Question) => string | undefined;

const limits: Readonly<Record<string, Limit>> = {
  "/secrets": readReferred,
  "/configmaps": readReferred,
  "/persistentvolumeclaims": claim,
  "/persistentvolumes": individually,
  "resource.svc.io/resourceclaims": individually,
  "resource.svc.io/resourceslices": resourceSlice,
  "storage.svc.io/volumeattachments": individually,
  "/serviceaccounts": serviceAccount,
  "/nodes": ownNode,
  "/pods": ownPods,
  "coordination.svc.io/leases": ownLease,
  "storage.svc.io/csinodes": ownCsiNode,
};

function readReferred(question: Question): string | undefined {
  const { verb, subresource, namespace } = question.attributes;
  if (verb !== "get" && verb !== "list" && verb !== "watch") return "can only read resources of this type";
  if (subresource !== "") return "cannot read subresource";
  if (namespace === "") return "can only read namespaced object of this type";
  return referred(question);
}

function claim(question: Question): string | undefined {
  const { verb, subresource } = question.attributes;
  if (subresource !== "status") return individually(question);
  return verb === "update" || verb === "patch" ? referred(question) : "can only get/update/patch this type";
}

function individually(question: Question): string | undefined {
  const { verb, subresource } = question.attributes;
  if (verb !== "get") return "can only get individual resources of this type";
  return subresource === "" ? referred(question) : "cannot get subresource";
}

function resourceSlice(question: Question): string | undefined {
  const { node, attributes, selectors } = question;
  const { verb, subresource } = attributes;
  if (subresource !== "") return "cannot authorize ResourceSlice subresources";
  switch (verb) {
    case "create":
      return undefined;
    case "get":
    case "update":
    case "patch":
    case "delete":
      return referred(question);
    case "list":
    case "watch":
    case "deletecollection":
      if (!selectors || selected(attributes, "spec.nodeName") === node) return undefined;
      return "can only list/watch/deletecollection resourceslices with nodeName field selector";
    default:
      return (
        "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, " +
        "deletecollection"
      );
  }
}

function serviceAccount(question: Question): string | undefined {
  const { verb, subresource, name } = question.attributes;
  if (verb === "get" && subresource === "") {
    return question.accounts ? readReferred(question) : "not allowed to get service accounts";
  }
  if (verb !== "create" || name === "") return "can only create tokens for individual service accounts";
  return subresource === "token" ? referred(question) : "can only create token subresource of serviceaccount";
}

/** What it writes is for the plugin NodeRestriction to judge, which sees the objects; so with pods. */
function ownNode({ node, attributes, selectors }: Question): string | undefined {
  if (!selectors || !isReading(attributes.verb)) return undefined;
  const name = attributes.name === "" ? selected(attributes, "metadata.name") : attributes.name;
  if (name === node) return undefined;
  const what = name === "" ? "all nodes" : `'${name}'`;
  return `node '${node}' cannot read ${what}, only its own Node object`;
}

function ownPods(question: Question): string | undefined {
  const { node, attributes, selectors } = question;
  const { verb, subresource, name } = attributes;
  if (!selectors || !isReading(verb) || subresource !== "") return undefined;
  if (verb === "get" || name !== "") return referred(question);
  return selected(attributes, "spec.nodeName") === node
    ? undefined
    : "can only list/watch pods with spec.nodeName field selector";
}

function isReading(verb: string): boolean {
  return verb === "get" || verb === "list" || verb === "watch";
}

function ownLease({ node, attributes }: Question): string | undefined {
  const { verb, namespace, name } = attributes;
  if (!["get", "create", "update", "patch", "delete"].includes(verb)) {
    return "can only get, create, update, patch, or delete a node lease";
  }
  if (namespace !== LEASE_NAMESPACE)
    return `can only access leases in the ${JSON.stringify(LEASE_NAMESPACE)} system namespace`;
  if (verb === "create" && name === "") return undefined;
  return name === node ? undefined : "can only access node lease with the same name as the requesting node";
}

function ownCsiNode({ node, attributes }: Question): string | undefined {
  const { verb, subresource, name } = attributes;
  if (!["get", "create", "update", "patch", "delete"].includes(verb)) {
    return "can only get, create, update, patch, or delete a CSINode";
  }
  if (subresource !== "") return "cannot authorize CSINode subresources";
  if (verb === "create" && name === "") return undefined;
  return name === node ? undefined : "can only access CSINode with the same name as the requesting node";
}

function referred({ node, attributes, graph }: Question): string | undefined {
  const { resource, namespace, name } = attributes;
  if (name === "") return "No Object name found";
  if (graph.refers(node, resource, namespace, name)) return undefined;
  return `no relationship found between node '${node}' and this object`;
}

/** What a field selector demands of a field; empty when it demands nothing, or something else than equality. */
function selected({ fieldSelector = "" }: Attributes, field: string): string {
  for (const clause of fieldSelector.split(",")) {
    const match = /^\s*([^=!\s]+)\s*==?\s*([^=!\s]*)\s*$/.exec(clause);
    if (match?.[1] === field) return match[2]!;
  }
  return "";
}

function resourceOf({ apiGroup, resource }: Attributes): string {
  return `${svcGroup(apiGroup)}/${resource}`;
}

/** The node's name; undefined when the user is no node, empty when its name is malformed. */
function nodeOf(user: UserInfo): string | undefined {
  if (!user.name.startsWith(NODE_USER_PREFIX) || !user.groups.includes(NODES)) return undefined;
  return user.name.slice(NODE_USER_PREFIX.length);
}

function abstain(reason: string): Authorization {
  return { decision: "no-opinion", reason };
}
