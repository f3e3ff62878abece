/** The effect of each flag of `svc controller-manager`. */
import type { Test } from "tap";
import {
  concurrencyFlags,
  type controllerManagerFlags,
  controllerManagerProgram,
} from "../../controller-manager/flags.ts";
import { type ControllerManagerOptions, controllerManagerOptions } from "../../controller-manager/options.ts";
import { invokeMutant } from "../../testing/flags/mutant.ts";
import { componentEffects, warns } from "./component-effects.ts";

type Effects = Partial<Record<keyof typeof controllerManagerFlags, (t: Test) => Promise<void>>>;

function invoke(...argv: readonly string[]) {
  const invoked = invokeMutant(controllerManagerProgram, argv, { version: "v1.33.0" });
  if (invoked.kind === "exit") throw new Error(invoked.stderr);
  return invoked;
}

const options = (...argv: readonly string[]): ControllerManagerOptions =>
  controllerManagerOptions(invoke(...argv).flags);
const settings = (...argv: readonly string[]) => options(...argv).controllerOptions;

const controllerEffects: Effects = {
  controllers: async (t) => {
    t.same(options("--controllers=deployment-controller,-job").controllers, ["deployment"]);
    const all = options("--controllers=*,bootstrapsigner,-cronjob-controller").controllers;
    t.ok(all.includes("bootstrapsigner") && all.includes("job"));
    t.notOk(all.includes("cronjob") || all.includes("tokencleaner") || all.includes("scheduler"));
    t.throws(() => options("--controllers=replicas"), { message: /there is no controller "replicas"/ });
  },
  "use-service-account-credentials": async (t) => {
    t.equal(options("--use-service-account-credentials").usesAccounts, true);
  },
  "root-ca-file": async (t) => {
    t.equal(options("--root-ca-file=/etc/svc/ca.crt").rootCaFile, "/etc/svc/ca.crt");
  },
  "service-account-private-key-file": async (t) => {
    t.equal(options("--service-account-private-key-file=/etc/svc/sa.key").accountKeyFile, "/etc/svc/sa.key");
  },
  "cluster-signing-cert-file": async (t) => {
    const { signing } = options("--cluster-signing-cert-file=/c", "--cluster-signing-key-file=/k");
    t.equal(signing?.clients.certFile, "/c");
  },
  "cluster-signing-key-file": async (t) => {
    const { signing } = options("--cluster-signing-cert-file=/c", "--cluster-signing-key-file=/k");
    t.equal(signing?.nodeServing.keyFile, "/k");
  },
  "cluster-signing-duration": async (t) => {
    const files = ["--cluster-signing-cert-file=/c", "--cluster-signing-key-file=/k"];
    t.equal(options(...files, "--cluster-signing-duration=1h").signing?.lifetimeMs, 3_600_000);
  },
  "cluster-name": warns({ invoke }, "--cluster-name=edge"),
  "allocate-node-cidrs": async (t) => {
    t.same(settings("--cluster-cidr=10.244.0.0/16", "--allocate-node-cidrs").clusterCidrs, ["10.244.0.0/16"]);
    t.same(settings("--cluster-cidr=10.244.0.0/16").clusterCidrs, []);
  },
  "cluster-cidr": async (t) => {
    const dual = settings("--cluster-cidr=10.244.0.0/16,fd00:244::/48", "--allocate-node-cidrs");
    t.same(dual.clusterCidrs, ["10.244.0.0/16", "fd00:244::/48"]);
    t.throws(() => settings("--cluster-cidr=10.0.0.0/16,10.1.0.0/16"), { message: /must be one CIDR/ });
  },
  "service-cluster-ip-range": async (t) => {
    t.same(settings("--service-cluster-ip-range=10.96.0.0/12").serviceCidrs, ["10.96.0.0/12"]);
  },
  "node-cidr-mask-size": async (t) => {
    const single = settings("--cluster-cidr=10.0.0.0/8", "--allocate-node-cidrs", "--node-cidr-mask-size=20");
    t.same(single.nodeCidrMaskSizes, { ipv4: 20, ipv6: 64 });
  },
  "node-cidr-mask-size-ipv4": async (t) => {
    t.equal(settings("--node-cidr-mask-size-ipv4=22").nodeCidrMaskSizes?.ipv4, 22);
  },
  "node-cidr-mask-size-ipv6": async (t) => {
    t.equal(settings("--node-cidr-mask-size-ipv6=80").nodeCidrMaskSizes?.ipv6, 80);
  },
  "pvclaimbinder-sync-period": async (t) => {
    t.equal(settings("--pvclaimbinder-sync-period=5s").claimBinderSyncPeriodMs, 5_000);
  },
  "disable-force-detach-on-timeout": async (t) => {
    t.equal(settings("--disable-force-detach-on-timeout").disableForceDetachOnTimeout, true);
  },
  "disable-attach-detach-reconciler-sync": warns({ invoke }, "--disable-attach-detach-reconciler-sync"),
  ...Object.fromEntries(
    Object.entries(concurrencyFlags).map(([name, controller]) => [
      name,
      async (t: Test) => {
        t.same(settings(`--${name}=37`).concurrentSyncs, { [controller]: 37 });
      },
    ]),
  ),
};

export const controllerManagerEffects: Effects = {
  ...componentEffects({ word: "controller-manager", name: "kube-controller-manager", invoke, options }),
  ...controllerEffects,
};
