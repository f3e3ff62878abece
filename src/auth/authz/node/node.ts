import { TUNNEL_SUBRESOURCE } from "../../../api/core/node/tunnel.ts";
import { svcGroup } from "../../../api/scheme.ts";
import {
  type Attributes,
  type Authorization,
  type Authorizer,
  NODE_USER_PREFIX,
  NODES,
  type UserInfo,
} from "../../user.ts";
import { nodeClaimRules } from "../rbac/bootstrap-policy/gated-rules.ts";
import { bootstrapRules } from "../rbac/bootstrap-policy/policy.ts";
import { ruleAllows } from "../rbac/rbac.ts";
import type { NodeGraph } from "./node-graph.ts";

const LEASE_NAMESPACE = "kube-node-lease";

export interface NodeAuthorizerOptions {
  /** Feature gate `AuthorizeNodeWithSelectors`; default true. */
  readonly selectors?: boolean | undefined;
  /**
   * Feature gate `SvcletServiceAccountTokenForCredentialProviders`: nodes may read the service accounts of their pods.
   */
  readonly accounts?: boolean | undefined;
  /** Feature gate `DynamicResourceAllocation`: nodes read the resource claims of their pods. */
  readonly resourceClaims?: boolean | undefined;
}

/**
 * `--authorization-mode=Node`: a node (user `system:node:NAME` in the group `system:nodes`) has the permissions of the
 * role `system:node`, limited to its own lease and to the objects that its pods reference. With `selectors`, it reads
 * only its own Node and pods: lists and watches must have a field selector with its name.
 */
export function nodeAuthorizer(
  graph: NodeGraph,
  { selectors = true, accounts = false, resourceClaims = false }: NodeAuthorizerOptions = {},
): Authorizer {
  const rules = [
    ...NODE_RULES,
    ...TUNNEL_RULES,
    ...(accounts ? ACCOUNT_RULES : []),
    ...(resourceClaims ? nodeClaimRules : []),
  ];
  return {
    authorize: (attributes) => {
      const node = nodeOf(attributes.user);
      if (node === undefined) return NO_NODE;
      if (node === "") return noOpinion(`unknown node for user ${JSON.stringify(attributes.user.name)}`);
      const limit = attributes.isResourceRequest ? limits[resourceOf(attributes)] : undefined;
      const reason = limit?.({ node, attributes, graph, selectors, accounts });
      if (reason !== undefined) return noOpinion(reason);
      return rules.some((rule) => ruleAllows(rule, attributes)) ? { decision: "allow", reason: "" } : noOpinion("");
    },
    rulesFor(user) {
      if (nodeOf(user) === undefined) return { rules: [], incomplete: false };
      return { rules: [], incomplete: true, error: "node authorizer does not support user rule resolution" };
    },
  };
}

const NO_NODE = noOpinion("");
const NODE_RULES = bootstrapRules("system:node");
/** Beyond Kubernetes' role: a node opens its own tunnel. */
const TUNNEL_RULES = [{ verbs: ["get"], apiGroups: [""], resources: [`nodes/${TUNNEL_SUBRESOURCE}`] }];
const ACCOUNT_RULES = [{ verbs: ["get"], apiGroups: [""], resources: ["serviceaccounts"] }];

interface NodeRequest {
  readonly node: string;
  readonly attributes: Attributes;
  readonly graph: NodeGraph;
  readonly selectors: boolean;
  readonly accounts: boolean;
}

/** Returns Kubernetes' reason for a rejection; "" for none; undefined if the rules of the role decide. */
type NodeLimit = (question: NodeRequest) => string | undefined;

const limits: Readonly<Record<string, NodeLimit>> = {
  "/secrets": limitRelatedRead,
  "/configmaps": limitRelatedRead,
  "/persistentvolumeclaims": limitClaim,
  "/persistentvolumes": limitGet,
  "resource.svc.io/resourceclaims": limitGet,
  "resource.svc.io/resourceslices": limitResourceSlice,
  "storage.svc.io/volumeattachments": limitGet,
  "/serviceaccounts": limitServiceAccount,
  "/nodes": limitNode,
  "/pods": limitPods,
  "coordination.svc.io/leases": limitLease,
  "storage.svc.io/csinodes": limitCsiNode,
};

function limitRelatedRead(question: NodeRequest): string | undefined {
  const { verb, subresource, namespace } = question.attributes;
  if (verb !== "get" && verb !== "list" && verb !== "watch") return "can only read resources of this type";
  if (subresource !== "") return "cannot read subresource";
  if (namespace === "") return "can only read namespaced object of this type";
  return requireRelationship(question);
}

function limitClaim(question: NodeRequest): string | undefined {
  const { verb, subresource } = question.attributes;
  if (subresource !== "status") return limitGet(question);
  return verb === "update" || verb === "patch" ? requireRelationship(question) : "can only get/update/patch this type";
}

function limitGet(question: NodeRequest): string | undefined {
  const { verb, subresource } = question.attributes;
  if (verb !== "get") return "can only get individual resources of this type";
  return subresource === "" ? requireRelationship(question) : "cannot get subresource";
}

function limitResourceSlice(question: NodeRequest): string | undefined {
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
      return requireRelationship(question);
    case "list":
    case "watch":
    case "deletecollection":
      if (!selectors || requiredFieldValue(attributes, "spec.nodeName") === node) return undefined;
      return "can only list/watch/deletecollection resourceslices with nodeName field selector";
    default:
      return (
        "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, " +
        "deletecollection"
      );
  }
}

function limitServiceAccount(question: NodeRequest): string | undefined {
  const { verb, subresource, name } = question.attributes;
  if (verb === "get" && subresource === "") {
    return question.accounts ? limitRelatedRead(question) : "not allowed to get service accounts";
  }
  if (verb !== "create" || name === "") return "can only create tokens for individual service accounts";
  return subresource === "token"
    ? requireRelationship(question)
    : "can only create token subresource of serviceaccount";
}

/** The NodeRestriction plugin checks writes, since it has the objects; the same applies to pods. */
function limitNode({ node, attributes, selectors }: NodeRequest): string | undefined {
  const isLimited = selectors || attributes.subresource === TUNNEL_SUBRESOURCE;
  if (!isLimited || !isRead(attributes.verb)) return undefined;
  const name = attributes.name === "" ? requiredFieldValue(attributes, "metadata.name") : attributes.name;
  if (name === node) return undefined;
  const what = name === "" ? "all nodes" : `'${name}'`;
  return `node '${node}' cannot read ${what}, only its own Node object`;
}

function limitPods(question: NodeRequest): string | undefined {
  const { node, attributes, selectors } = question;
  const { verb, subresource, name } = attributes;
  if (!selectors || !isRead(verb) || subresource !== "") return undefined;
  if (verb === "get" || name !== "") return requireRelationship(question);
  return requiredFieldValue(attributes, "spec.nodeName") === node
    ? undefined
    : "can only list/watch pods with spec.nodeName field selector";
}

function isRead(verb: string): boolean {
  return verb === "get" || verb === "list" || verb === "watch";
}

function limitLease({ node, attributes }: NodeRequest): string | undefined {
  const { verb, namespace, name } = attributes;
  if (!["get", "create", "update", "patch", "delete"].includes(verb)) {
    return "can only get, create, update, patch, or delete a node lease";
  }
  if (namespace !== LEASE_NAMESPACE)
    return `can only access leases in the ${JSON.stringify(LEASE_NAMESPACE)} system namespace`;
  if (verb === "create" && name === "") return undefined;
  return name === node ? undefined : "can only access node lease with the same name as the requesting node";
}

function limitCsiNode({ node, attributes }: NodeRequest): string | undefined {
  const { verb, subresource, name } = attributes;
  if (!["get", "create", "update", "patch", "delete"].includes(verb)) {
    return "can only get, create, update, patch, or delete a CSINode";
  }
  if (subresource !== "") return "cannot authorize CSINode subresources";
  if (verb === "create" && name === "") return undefined;
  return name === node ? undefined : "can only access CSINode with the same name as the requesting node";
}

function requireRelationship({ node, attributes, graph }: NodeRequest): string | undefined {
  const { resource, namespace, name } = attributes;
  if (name === "") return "No Object name found";
  if (graph.hasRelationship(node, resource, namespace, name)) return undefined;
  return `no relationship found between node '${node}' and this object`;
}

/** The value that a field selector requires for a field; empty without such a requirement. */
function requiredFieldValue({ fieldSelector = "" }: Attributes, field: string): string {
  for (const clause of fieldSelector.split(",")) {
    const match = /^\s*([^=!\s]+)\s*==?\s*([^=!\s]*)\s*$/.exec(clause);
    if (match?.[1] === field) return match[2]!;
  }
  return "";
}

function resourceOf({ apiGroup, resource }: Attributes): string {
  return `${svcGroup(apiGroup)}/${resource}`;
}

/** The node's name; undefined if the user is not a node, "" if the name is missing. */
function nodeOf(user: UserInfo): string | undefined {
  if (!user.name.startsWith(NODE_USER_PREFIX) || !user.groups.includes(NODES)) return undefined;
  return user.name.slice(NODE_USER_PREFIX.length);
}

function noOpinion(reason: string): Authorization {
  return { decision: "no-opinion", reason };
}
