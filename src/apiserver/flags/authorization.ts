import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { strings } from "../../flags/types/list.ts";
import { int } from "../../flags/types/number.ts";
import { bool, file, oneOf } from "../../flags/types/text.ts";
import { admissionPlugins, defaultAdmissionPlugins } from "./values.ts";

const withWebhook = { requires: ["authorization-webhook-config-file"] };

export const authorizationFlags = section("Authorization and admission", {
  "authorization-mode": flag(
    strings({ choices: ["AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node"], sample: "Node,RBAC" }),
    ["AlwaysAllow"],
    "Ordered plug-ins: AlwaysAllow, AlwaysDeny, ABAC, Webhook, RBAC, Node.",
    { defaultNote: "AlwaysAllow, when there is no --authorization-config" },
  ),
  "authorization-config": flag(
    file,
    "",
    "Authorizer-chain file (document 3); needs gate StructuredAuthorizationConfiguration; exclusive with " +
      "--authorization-mode and --authorization-webhook-*.",
    { gate: "StructuredAuthorizationConfiguration", excludes: ["authorization-mode", "authorization-webhook-*"] },
  ),
  "authorization-policy-file": flag(file, "", "ABAC policy, JSON per line."),
  "authorization-webhook-config-file": flag(file, "", "Connection-config file for the webhook authorizer."),
  "authorization-webhook-version": flag(oneOf("v1beta1", "v1"), "v1beta1", "SubjectAccessReview version.", withWebhook),
  "authorization-webhook-cache-authorized-ttl": flag(
    duration({ min: 0 }),
    300_000,
    "Cache duration of authorized responses of the webhook authorizer.",
    withWebhook,
  ),
  "authorization-webhook-cache-unauthorized-ttl": flag(
    duration({ min: 0 }),
    30_000,
    "Cache duration of unauthorized responses of the webhook authorizer.",
    withWebhook,
  ),
  "admission-control-config-file": flag(file, "", "Admission control configuration file."),
  "enable-admission-plugins": flag(
    admissionPlugins,
    [],
    `Plugins enabled in addition to the default ones (${defaultAdmissionPlugins.join(", ")}).`,
  ),
  "disable-admission-plugins": flag(
    admissionPlugins,
    [],
    "Plugins disabled though in the default list. Order in either flag is irrelevant.",
  ),
  "allow-privileged": flag(bool, false, "Allow privileged containers."),
  "default-not-ready-toleration-seconds": flag(
    int({ min: 0 }),
    300,
    "tolerationSeconds of the default notReady:NoExecute toleration added to pods lacking one.",
  ),
  "default-unreachable-toleration-seconds": flag(
    int({ min: 0 }),
    300,
    "tolerationSeconds of the default unreachable:NoExecute toleration added to pods lacking one.",
  ),
});
