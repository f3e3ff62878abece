import t from "tap";
import type { Attributes } from "../user.ts";
import { forbiddenMessage } from "./reason.ts";

const base: Attributes = {
  user: { name: "x", uid: "", groups: [], extra: {} },
  verb: "list",
  isResourceRequest: true,
  namespace: "default",
  apiGroup: "",
  apiVersion: "v1",
  resource: "pods",
  subresource: "",
  name: "",
  path: "/api/v1/namespaces/default/pods",
};

t.test("forbiddenMessage() returns Kubernetes' messages", async (t) => {
  t.equal(forbiddenMessage(base), 'User "x" cannot list resource "pods" in API group "" in the namespace "default"');
  const scale = {
    ...base,
    verb: "update",
    apiGroup: "apps",
    resource: "deployments",
    subresource: "scale",
    namespace: "",
  };
  t.equal(
    forbiddenMessage(scale),
    'User "x" cannot update resource "deployments/scale" in API group "apps" at the cluster scope',
  );
  t.equal(
    forbiddenMessage({ ...base, isResourceRequest: false, verb: "get", path: "/nope" }),
    'User "x" cannot get path "/nope"',
  );
  t.match(forbiddenMessage(base, "because"), /"default": because$/);
  t.match(forbiddenMessage({ ...base, user: { ...base.user, name: '<b>"' } }), /^User "&lt;b&gt;\\"" cannot/);
});
