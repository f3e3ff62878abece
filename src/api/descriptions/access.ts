import type { Texts } from "./texts.ts";

const policyRule = {
  verbs: "Verbs: get, list, watch, create, update, patch, delete, …; * for all.",
  apiGroups: 'API groups of the resources; "" for the core group, * for all.',
  resources: "Resources, such as pods or pods/log; * for all.",
  resourceNames: "Restricts the rule to objects with these names; all if unset.",
  nonResourceURLs: "Paths that are not resources; a final * matches any suffix.",
};
const user = {
  user: "The user name.",
  groups: "The user's groups.",
  uid: "The user's uid.",
  extra: "Extra fields of the user.",
};
const attributes = {
  resourceAttributes: "The resource access to check.",
  nonResourceAttributes: "The access to a non-resource path to check.",
};

export const accessTexts: Texts = {
  "rbac/v1.Role": { "": "A set of permissions in a namespace.", rules: "The permissions; rules are additive." },
  "rbac/v1.ClusterRole": {
    "": "A set of permissions in the whole cluster, or in each namespace it is bound in.",
    rules: "The permissions; rules are additive.",
    aggregationRule: "Selects the cluster roles whose rules are combined into this one.",
  },
  "rbac/v1.AggregationRule": {
    "": "Selects cluster roles to combine.",
    clusterRoleSelectors: "Label selectors of the roles; a role that matches any of them is included.",
  },
  "rbac/v1.PolicyRule": { "": "A permission.", ...policyRule },
  "rbac/v1.RoleBinding": {
    "": "Grants the permissions of a role to subjects in a namespace.",
    subjects: "The subjects that the role is granted to.",
    roleRef: "The role; immutable.",
  },
  "rbac/v1.ClusterRoleBinding": {
    "": "Grants the permissions of a cluster role to subjects in the whole cluster.",
    subjects: "The subjects that the role is granted to.",
    roleRef: "The role; immutable.",
  },
  "rbac/v1.Subject": {
    "": "A subject that a role is granted to.",
    kind: "User, Group or ServiceAccount.",
    apiGroup: "The API group of the kind; empty for service accounts.",
    name: "The name.",
    namespace: "The namespace of a service account.",
  },
  "rbac/v1.RoleRef": {
    "": "A reference to a role.",
    apiGroup: "The API group of the kind.",
    kind: "Role or ClusterRole.",
    name: "Its name.",
  },
  "authentication/v1.TokenReview": { "": "A request to authenticate a token." },
  "authentication/v1.TokenReviewSpec": {
    "": "The token to authenticate.",
    token: "The token.",
    audiences: "The accepted audiences.",
  },
  "authentication/v1.TokenReviewStatus": {
    "": "The result of the authentication.",
    authenticated: "Whether the token is valid.",
    user: "The authenticated user.",
    audiences: "The audiences that the token is valid for.",
    error: "The error if the token could not be checked.",
  },
  "authentication/v1.UserInfo": {
    "": "The identity of a user.",
    username: "The name.",
    uid: "The uid.",
    groups: "The groups.",
    extra: "Extra fields from the authenticator.",
  },
  "authentication/v1.SelfSubjectReview": { "": "A request for the identity of the requesting user." },
  "authentication/v1.SelfSubjectReviewStatus": {
    "": "The identity of the requesting user.",
    userInfo: "The identity.",
  },
  "authentication/v1.TokenRequest": { "": "A request for a token of a service account." },
  "authentication/v1.TokenRequestSpec": {
    "": "The requested token.",
    audiences: "The intended audiences.",
    expirationSeconds: "The requested lifetime in seconds.",
    boundObjectRef: "The object that the token is bound to: it expires when the object is deleted.",
  },
  "authentication/v1.TokenRequestStatus": {
    "": "The token.",
    token: "The token.",
    expirationTimestamp: "The time of expiration.",
  },
  "authentication/v1.BoundObjectReference": {
    "": "The object that a token is bound to.",
    kind: "Its kind.",
    apiVersion: "The group and version of its kind.",
    name: "Its name.",
    uid: "Its uid.",
  },
  "authorization/v1.SubjectAccessReview": { "": "A request to check whether a user may perform an action." },
  "authorization/v1.LocalSubjectAccessReview": {
    "": "A request to check whether a user may perform an action in this namespace.",
  },
  "authorization/v1.SelfSubjectAccessReview": {
    "": "A request to check whether the requesting user may perform an action.",
  },
  "authorization/v1.SubjectAccessReviewSpec": { "": "The user and the action to check.", ...attributes, ...user },
  "authorization/v1.SelfSubjectAccessReviewSpec": { "": "The action to check.", ...attributes },
  "authorization/v1.SubjectAccessReviewStatus": {
    "": "The result of the check.",
    allowed: "Whether the action is allowed.",
    denied: "Whether an authorizer denied the action, so that no other is consulted.",
    reason: "The reason of the decision.",
    evaluationError: "The error if the check was incomplete.",
  },
  "authorization/v1.ResourceAttributes": {
    "": "The resource access to check.",
    namespace: "The namespace; empty for all.",
    verb: "The verb: get, list, create, …; * for all.",
    group: "The group of the resource; * for all.",
    version: "The version of the resource; * for all.",
    resource: "The resource; * for all.",
    subresource: "The subresource.",
    name: "The name of the object; empty for all.",
    fieldSelector: "Restricts the access by field selector.",
    labelSelector: "Restricts the access by label selector.",
  },
  "authorization/v1.NonResourceAttributes": {
    "": "The access to a non-resource path to check.",
    path: "The path.",
    verb: "The HTTP method, in lower case.",
  },
  "authorization/v1.SelfSubjectRulesReview": {
    "": "A request for the permissions of the requesting user in a namespace.",
  },
  "authorization/v1.SelfSubjectRulesReviewSpec": { "": "The namespace to check.", namespace: "The namespace." },
  "authorization/v1.SubjectRulesReviewStatus": {
    "": "The permissions of the requesting user.",
    resourceRules: "The permissions for resources.",
    nonResourceRules: "The permissions for non-resource paths.",
    incomplete: "Whether the list may be incomplete.",
    evaluationError: "The error if the check was incomplete.",
  },
  "authorization/v1.ResourceRule": {
    "": "A permission for resources.",
    verbs: policyRule.verbs,
    apiGroups: policyRule.apiGroups,
    resources: policyRule.resources,
    resourceNames: policyRule.resourceNames,
  },
  "authorization/v1.NonResourceRule": {
    "": "A permission for non-resource paths.",
    verbs: "HTTP methods, in lower case; * for all.",
    nonResourceURLs: policyRule.nonResourceURLs,
  },
  "certificates/v1.CertificateSigningRequest": { "": "A request for a signed certificate." },
  "certificates/v1beta1.ClusterTrustBundle": { "": "Certificates of authorities that workloads may trust." },
  "certificates/v1beta1.ClusterTrustBundleSpec": {
    "": "The signer and the certificates.",
    signerName: "The signer of what the authorities certify, if any; it cannot be changed.",
    trustBundle: "The certificates, in PEM.",
  },
  "certificates/v1.CertificateSigningRequestSpec": {
    "": "The requested certificate.",
    request: "The PKCS#10 request in PEM, encoded in base64.",
    signerName: "The requested signer.",
    expirationSeconds: "The requested lifetime in seconds; at least 600.",
    usages: "The requested key usages.",
    username: "The user that created the request; set by the server.",
    uid: "The user's uid; set by the server.",
    groups: "The user's groups; set by the server.",
    extra: "Extra fields of the user; set by the server.",
  },
  "certificates/v1.CertificateSigningRequestStatus": {
    "": "The observed state of a request.",
    conditions: "Approved, Denied, Failed.",
    certificate: "The certificate in PEM, encoded in base64.",
  },
  "certificates/v1.CertificateSigningRequestCondition": {
    "": "A condition of a request.",
    lastUpdateTime: "The time of the last update.",
  },
  "authorization/v1.FieldSelectorAttributes": {
    "": "Restricts a check by field selector.",
    rawSelector: "The selector as in a URL query.",
    requirements: "The parsed requirements.",
  },
  "authorization/v1.LabelSelectorAttributes": {
    "": "Restricts a check by label selector.",
    rawSelector: "The selector as in a URL query.",
    requirements: "The parsed requirements.",
  },
};
