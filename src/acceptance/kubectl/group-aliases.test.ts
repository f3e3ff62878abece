/** kubectl with both names of each API group in discovery: each works in commands and manifests. */
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

const lease = (domain: string): string => `apiVersion: coordination.${domain}/v1
kind: Lease
metadata: {name: mine}
spec: {holderIdentity: ${domain}}
`;

const cases: readonly KubectlOutput[] = [
  ["api-versions", /coordination\.k8s\.io\/v1\ncoordination\.svc\.io\/v1\n/],
  ["1.22: api-resources", /leases +coordination\.k8s\.io\/v1(.*\n)*leases +coordination\.svc\.io\/v1/],
  ["apply -f DIR/k8s.io.yaml", /^lease\.coordination\.k8s\.io\/mine created\n$/],
  ["apply -f DIR/svc.io.yaml", /^lease\.coordination\.svc\.io\/mine configured\n$/],
  ["apply --server-side --force-conflicts -f DIR/k8s.io.yaml", /lease\.coordination\.k8s\.io\/mine serverside-applied/],
  ["get lease mine -o jsonpath={.apiVersion}", /^coordination\.k8s\.io\/v1$/],
  ["get leases.coordination.svc.io mine -o jsonpath={.apiVersion}", /^coordination\.svc\.io\/v1$/],
  ["1.27: explain leases.coordination.svc.io", /KIND: +Lease/],
  ["delete -f DIR/svc.io.yaml", /lease\.coordination\.svc\.io "mine" deleted/],
  ["get leases.coordination.k8s.io", /No resources found/],
];

testWithKubectls(cases, {
  files: { "k8s.io.yaml": lease("k8s.io"), "svc.io.yaml": lease("svc.io") },
  serverConfig: { groupAliases: { served: true, listed: true } },
});
