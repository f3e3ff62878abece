/** Whether a request matches a flow schema. */
import type {
  FlowSchema,
  NonResourcePolicyRule,
  PolicyRulesWithSubjects,
  ResourcePolicyRule,
  Subject,
} from "../../api/flowcontrol/flow-schema/schema.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { isInGroup, type UserInfo } from "../../auth/user.ts";
import type { RequestInfo } from "../request/request-info.ts";

export type RequestMatcher = (info: RequestInfo, user: UserInfo) => boolean;

type UserMatcher = (user: UserInfo) => boolean;
type InfoMatcher = (info: RequestInfo) => boolean;
type TextMatcher = (text: string) => boolean;

const ALL = "*";

/** Compiles the rules once: the matcher allocates nothing. */
export function compileFlowSchema({ spec }: FlowSchema): RequestMatcher {
  const rules = (spec?.rules ?? []).map(compileRule);
  return (info, user) => {
    for (const matches of rules) if (matches(info, user)) return true;
    return false;
  };
}

function compileRule({ subjects, resourceRules = [], nonResourceRules = [] }: PolicyRulesWithSubjects): RequestMatcher {
  const users = subjects.map(compileSubject);
  const resources = resourceRules.map(compileResourceRule);
  const paths = nonResourceRules.map(compileNonResourceRule);
  return (info, user) => {
    let isSubject = false;
    for (const matches of users) {
      if (!matches(user)) continue;
      isSubject = true;
      break;
    }
    if (!isSubject) return false;
    for (const matches of info.isResourceRequest ? resources : paths) if (matches(info)) return true;
    return false;
  };
}

function compileSubject({ kind, user, group, serviceAccount }: Subject): UserMatcher {
  if (kind === "User" && user !== undefined) {
    return user.name === ALL ? always : ({ name }) => name === user.name;
  }
  if (kind === "Group" && group !== undefined) {
    return group.name === ALL ? always : (candidate) => isInGroup(candidate, group.name);
  }
  if (kind === "ServiceAccount" && serviceAccount !== undefined) {
    const prefix = `system:serviceaccount:${serviceAccount.namespace}:`;
    if (serviceAccount.name === ALL) return ({ name }) => name.startsWith(prefix);
    const account = prefix + serviceAccount.name;
    return ({ name }) => name === account;
  }
  return never;
}

function compileResourceRule(rule: ResourcePolicyRule): InfoMatcher {
  const matchesVerb = anyOf(rule.verbs);
  const matchesGroup = anyOf(rule.apiGroups.map(kubernetesGroup));
  const matchesResource = anyOf(rule.resources);
  const matchesNamespace = anyOf(rule.namespaces ?? []);
  const clusterScope = rule.clusterScope === true;
  return ({ verb, group, resource, subresource, namespace }) =>
    matchesVerb(verb) &&
    matchesResource(subresource === "" ? resource : `${resource}/${subresource}`) &&
    matchesGroup(kubernetesGroup(group)) &&
    (namespace === "" ? clusterScope : matchesNamespace(namespace));
}

function compileNonResourceRule({ verbs, nonResourceURLs }: NonResourcePolicyRule): InfoMatcher {
  const matchesVerb = anyOf(verbs);
  const paths = nonResourceURLs.map((path) => {
    const trimmed = path.replace(/\*$/, "");
    return { path, prefix: trimmed.endsWith("/") ? trimmed : `${trimmed}/` };
  });
  const everyPath = nonResourceURLs.includes(ALL);
  return ({ verb, path }) =>
    matchesVerb(verb) && (everyPath || paths.some((one) => one.path === path || path.startsWith(one.prefix)));
}

/** The wildcard counts only when it is alone, as validation requires. */
function anyOf(values: readonly string[]): TextMatcher {
  const [first] = values;
  if (values.length === 1) return first === ALL ? always : (text) => text === first;
  return (text) => values.includes(text);
}

function always(): true {
  return true;
}

function never(): false {
  return false;
}
