/** Every flag of `svc apiserver`, in the order of its help. */
import { flag, section } from "../flags/flag.ts";
import { strings } from "../flags/types/list.ts";
import { oneOfOrNone } from "../flags/types/text.ts";
import { auditFlags } from "./flags/audit.ts";
import { authenticationFlags } from "./flags/authentication.ts";
import { authorizationFlags } from "./flags/authorization.ts";
import { lifecycleFlags } from "./flags/lifecycle.ts";
import { servingFlags } from "./flags/serving.ts";
import { storageFlags } from "./flags/storage.ts";

const ownFlags = section("Single-process clusters", {
  "embedded-controllers": flag(
    strings({ sample: "scheduler" }),
    [],
    "Controllers that run inside this process, for clusters that have nobody else to run them; * stands for all.",
    { effective: true },
  ),
  "api-group-aliases": flag(
    oneOfOrNone("k8s.io"),
    "k8s.io",
    "Second spelling under which the svc.io API groups are served, so that Kubernetes clients work; empty for none.",
  ),
});

export const apiserverFlags = {
  ...servingFlags,
  ...authenticationFlags,
  ...authorizationFlags,
  ...storageFlags,
  ...lifecycleFlags,
  ...auditFlags,
  ...ownFlags,
};
