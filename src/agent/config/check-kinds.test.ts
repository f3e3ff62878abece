import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { agentFileKinds } from "./check-kinds.ts";

/** The problems of a file of the kind. */
async function check(t: Test, kind: string, text: string): Promise<readonly string[]> {
  const file = join(t.testdir(), "file.yaml");
  writeFileSync(file, text);
  const found = agentFileKinds.find((each) => each.kind === kind);
  try {
    await found?.load({ file, text });
    return found === undefined ? ["no such kind"] : [];
  } catch (error) {
    const errors = error instanceof AggregateError ? (error.errors as readonly Error[]) : [error as Error];
    return errors.map(({ message }) => message.replaceAll(file, "FILE"));
  }
}

const CONFIG = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
const PROVIDERS = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n";
const POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n";

t.test("valid files have no problems", async (t) => {
  t.same(await check(t, "KubeletConfiguration", `${CONFIG}maxPods: 5\n`), []);
  t.same(await check(t, "Pod", POD), []);
  t.same(
    await check(
      t,
      "List",
      `apiVersion: v1\nkind: List\nitems: [${JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } })}]\n`,
    ),
    [],
  );
  const provider = "apiVersion: credentialprovider.kubelet.k8s.io/v1";
  const providers = `${PROVIDERS}providers: [{name: a, matchImages: [x.io], defaultCacheDuration: 1m, ${provider}}]\n`;
  t.same(await check(t, "CredentialProviderConfig", providers), []);
});

t.test("each mistake is a problem of its own", async (t) => {
  t.same(await check(t, "KubeletConfiguration", `${CONFIG}maxPodss: 5\ncgroupRot: a\n`), [
    "FILE:3: unknown field maxPodss: did you mean maxPods?",
    "FILE:4: unknown field cgroupRot: did you mean cgroupRoot?",
  ]);
  t.match(await check(t, "KubeletConfiguration", `${CONFIG}tracing: {endpoint: "https://a"}\n`), [
    /^FILE:3: tracing\.endpoint: .*unsupported scheme: https/,
  ]);
  t.match(await check(t, "CredentialProviderConfig", `${PROVIDERS}providers: [{name: a/b}]\n`), [
    /providers\[0\]\.name: .*cannot contain path separators/,
  ]);
  t.match(await check(t, "Pod", POD.replace("name: a", "name: Web_, namespace: a.b")), [
    /^FILE:3: metadata\.name: Invalid value: "Web_": a lowercase RFC 1123 subdomain/,
    /^FILE:3: metadata\.namespace: Invalid value: "a\.b"/,
  ]);
  t.match(await check(t, "Pod", POD.replace("{name: a}", "{}")), [
    /metadata\.name: Required value: name or generateName/,
  ]);
  t.same(await check(t, "Pod", `${POD}---\n${POD.replace("image: i", "imag: i")}`), [
    "FILE:9: spec.containers[0].imag: unknown field",
    "FILE:9: spec.containers[0].image: Required value",
  ]);
});
