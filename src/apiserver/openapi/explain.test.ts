/** `kubectl explain` shows descriptions, enums, types and nested fields of the OpenAPI documents. */
import { type KubectlOutput, testWithKubectls } from "../../testing/apiserver/kubectl-harness.ts";

const cases: readonly KubectlOutput[] = [
  ["explain pods", /KIND: +Pod\nVERSION: +v1\n\nDESCRIPTION:\n +A group of containers that run together on a node/],
  ["explain pod.spec.containers", /imagePullPolicy\t<string>\n(?: +enum: .*\n)? +When to pull the image/],
  ["explain pod.spec.containers.livenessProbe.httpGet", /path\t<string>\n +The path of the request\./],
  ["1.27: explain pod.spec --recursive", /containers\t<\[\]Container>.*\n(?:.*\n)* +livenessProbe\t<Probe>/],
  [
    "1.27: explain deployment.spec.strategy.rollingUpdate",
    /maxSurge\t<IntOrString>\n(?:.*\n)? .*surplus pods during an update/,
  ],
  ["explain --api-version=autoscaling/v1 hpa.spec", /targetCPUUtilizationPercentage/],
  ["1.27: explain networkpolicies.networking.svc.io.spec.ingress", /GROUP: +networking\.svc\.io/],
  ["explain customresourcedefinitions.spec.versions.schema", /openAPIV3Schema/],
  // OpenAPI v2 in protobuf, as kubectl before 1.27 requests it.
  [
    "1.27: explain pod.spec.containers --output=plaintext-openapiv2",
    /imagePullPolicy\t<string>\n +When to pull the image/,
  ],
  ["explain pod.spec.nothing", /field "nothing" does not exist/],
];

testWithKubectls(cases, { serverConfig: { groupAliases: { served: true, listed: true } } });
