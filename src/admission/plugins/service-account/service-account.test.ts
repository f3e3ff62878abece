import t from "tap";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { serviceAccountKind } from "../../../api/core/service-account/kind.ts";
import type { ServiceAccount } from "../../../api/core/service-account/schema.ts";
import {
  type ClusterObjects,
  pluginDeps,
  rejectionOf,
  runPlugin,
} from "../../../testing/admission/admission-fixture.ts";
import { serviceAccount } from "./service-account.ts";

const MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";

function account(name: string, more: object = {}, annotations: Record<string, string> = {}): ServiceAccount {
  return { metadata: { name, namespace: "default", annotations }, ...more } as ServiceAccount;
}

function pod(spec: object = {}, annotations: Record<string, string> = {}): Pod {
  const metadata = { name: "p", namespace: "default", annotations };
  return { metadata, spec: { containers: [{ name: "a", image: "i" }], ...spec } } as Pod;
}

function plugin(...accounts: readonly ServiceAccount[]) {
  const present: ClusterObjects = accounts.map((each) => [serviceAccountKind, each] as const);
  return serviceAccount(pluginDeps(present));
}

t.test("serviceAccount() sets the default service account and mounts its token in all containers", async (t) => {
  const two = [
    { name: "a", image: "i" },
    { name: "b", image: "i", volumeMounts: [{ name: "mine", mountPath: MOUNT_PATH }] },
  ];
  const subject = pod({ initContainers: [{ name: "i", image: "i" }], containers: two });
  const { object } = await runPlugin(plugin(account("default")), podKind, subject);
  const { volumes = [], containers, initContainers, ...spec } = object.spec!;
  t.equal(spec.serviceAccountName, "default");
  const [{ name }] = volumes as [{ name: string }];
  t.match(name, /^kube-api-access-[a-z0-9]{5}$/u);
  t.strictSame(volumes, [
    {
      name,
      projected: {
        sources: [
          { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
          { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
          {
            downwardAPI: {
              items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }],
            },
          },
        ],
        defaultMode: 0o644,
      },
    },
  ]);
  const mount = { name, readOnly: true, mountPath: MOUNT_PATH };
  t.strictSame(initContainers?.[0]?.volumeMounts, [mount]);
  t.strictSame(containers[0]?.volumeMounts, [mount]);
  t.equal(containers[1]?.volumeMounts?.length, 1, "a mount that is there already stays");
});

t.test("serviceAccount() mounts no token if the pod, or else its account, disables it", async (t) => {
  const off = { automountServiceAccountToken: false };
  const on = { automountServiceAccountToken: true };
  const cases: readonly (readonly [object, object, number])[] = [
    [off, {}, 0],
    [{}, off, 0],
    [on, off, 1],
    [off, on, 0],
  ];
  for (const [spec, own, count] of cases) {
    const { object } = await runPlugin(plugin(account("default", own)), podKind, pod(spec));
    t.equal(object.spec?.volumes?.length ?? 0, count, JSON.stringify([spec, own]));
  }
});

t.test("serviceAccount() adds the pull secrets of the account to pods without any", async (t) => {
  const one = plugin(account("builder", { imagePullSecrets: [{ name: "registry" }] }));
  const { object } = await runPlugin(one, podKind, pod({ serviceAccountName: "builder" }));
  t.strictSame(object.spec?.imagePullSecrets, [{ name: "registry" }]);
  const own = { serviceAccountName: "builder", imagePullSecrets: [{ name: "mine" }] };
  t.strictSame((await runPlugin(one, podKind, pod(own))).object.spec?.imagePullSecrets, [{ name: "mine" }]);
});

t.test("serviceAccount() rejects pods whose account does not exist", async (t) => {
  t.equal(
    await rejectionOf(runPlugin(plugin(account("default")), podKind, pod({ serviceAccountName: "missing" }))),
    'pods "p" is forbidden: error looking up service account default/missing: serviceaccount "missing" not found',
  );
});

t.test("serviceAccount() waits for the default account of a new namespace", async (t) => {
  const deps = pluginDeps();
  let reads = 0;
  const get = async () => (++reads < 3 ? undefined : account("default")) as never;
  const waits: number[] = [];
  const clock = { ...deps.clock, sleep: async (ms: number) => void waits.push(ms) };
  const late = serviceAccount({ ...deps, clock: clock as never, reader: { ...deps.reader, get } });
  t.equal((await runPlugin(late, podKind, pod())).object.spec?.serviceAccountName, "default");
  t.strictSame(waits, [150, 150]);
});

t.test("serviceAccount() mounts no token in mirror pods and rejects references of theirs", async (t) => {
  const mirror = { "kubernetes.io/config.mirror": "hash" };
  t.strictSame((await runPlugin(plugin(), podKind, pod({}, mirror))).object, pod({}, mirror));
  const cases: readonly (readonly [object, string])[] = [
    [{ serviceAccountName: "a" }, "a mirror pod may not reference service accounts"],
    [{ imagePullSecrets: [{ name: "a" }] }, "a mirror pod may not reference secrets"],
    [{ volumes: [{ name: "v", secret: { secretName: "s" } }] }, "a mirror pod may not reference secrets"],
    [
      { volumes: [{ name: "v", csi: { driver: "d", nodePublishSecretRef: { name: "s" } } }] },
      "a mirror pod may not reference secrets",
    ],
    [
      { ephemeralContainers: [{ name: "e", envFrom: [{ secretRef: { name: "s" } }] }] },
      "a mirror pod may not reference secrets",
    ],
    [
      { volumes: [{ name: "v", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } }] },
      "a mirror pod may not use service account token volume projections",
    ],
  ];
  for (const [spec, text] of cases) {
    t.equal(await rejectionOf(runPlugin(plugin(), podKind, pod(spec, mirror))), `pods "p" is forbidden: ${text}`);
  }
});

t.test(
  "serviceAccount() rejects secrets that the account does not list, if it enforces mountable secrets",
  async (t) => {
    const strict = { "kubernetes.io/enforce-mountable-secrets": "true" };
    const named = { secrets: [{ name: "known" }], imagePullSecrets: [{ name: "registry" }] };
    const one = plugin(account("default", named, strict));
    const env = (name: string) => [{ name: "E", valueFrom: { secretKeyRef: { name, key: "k" } } }];
    const tail = "is not allowed because service account default does not reference that";
    const cases: readonly (readonly [object, string])[] = [
      [{ containers: [{ name: "a", image: "i", env: env("known") }], imagePullSecrets: [{ name: "registry" }] }, ""],
      [
        { volumes: [{ name: "v", secret: { secretName: "other" } }] },
        `volume with secret.secretName="other" ${tail} secret`,
      ],
      [
        { containers: [{ name: "a", image: "i", env: env("other") }] },
        `container a with envVar E referencing secret.secretName="other" ${tail} secret`,
      ],
      [
        { initContainers: [{ name: "b", image: "i", envFrom: [{ secretRef: { name: "other" } }] }] },
        `init container b with envFrom referencing secret.secretName="other" ${tail} secret`,
      ],
      [{ imagePullSecrets: [{ name: "other" }] }, `imagePullSecrets[0].name="other" ${tail} imagePullSecret`],
    ];
    for (const [spec, text] of cases) {
      const said = await rejectionOf(runPlugin(one, podKind, pod(spec)));
      t.equal(said, text === "" ? "" : `pods "p" is forbidden: ${text}`);
    }
    const debugged = pod({ serviceAccountName: "default", ephemeralContainers: [{ name: "d", env: env("other") }] });
    const fields = { oldObject: pod({ serviceAccountName: "default" }), subresource: "ephemeralcontainers" };
    t.match(await rejectionOf(runPlugin(one, podKind, debugged, fields)), "ephemeral container d with envVar E");
  },
);
