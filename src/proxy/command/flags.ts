/** Every flag of `svc proxy`, in the order of its help. */
import { isIP } from "node:net";
import { connectionFlags, loggingFlags, otherFlags } from "../../component/flags.ts";
import { flag, section } from "../../flags/flag.ts";
import { validateLogging } from "../../flags/log-options.ts";
import type { Program } from "../../flags/program.ts";
import { gateSettings } from "../../flags/types/gate-settings.ts";
import { cidrs } from "../../flags/types/network.ts";
import { bool, pattern, text } from "../../flags/types/text.ts";

const socketAddress = pattern(
  "ADDRESS:PORT, or nothing",
  (value) => value === "" || parseSocketAddress(value) !== undefined,
  "127.0.0.1:10256",
  { wrong: "localhost" },
);

/** Undefined for text that is not an address and a port. */
export function parseSocketAddress(value: string): { readonly host: string; readonly port: number } | undefined {
  const [, six, four, port = ""] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(value) ?? [];
  const host = six ?? four ?? "";
  return isIP(host) === 0 || Number(port) > 65_535 ? undefined : { host, port: Number(port) };
}

export const proxyFlags = {
  ...connectionFlags,
  ...section("Node", {
    "hostname-override": flag(text, "", "Name of the node.", { defaultNote: "the host name" }),
    "cluster-cidr": flag(
      cidrs,
      [],
      "Ranges of the addresses of all pods. Packets from elsewhere to services get the node's address as source.",
    ),
    cleanup: flag(bool, false, "Remove the rules of the proxy, and exit."),
    "keep-rules": flag(
      bool,
      false,
      "Leave the rules when the proxy stops, so that services work until its next start.",
    ),
  }),
  ...section("Serving", {
    "healthz-bind-address": flag(
      socketAddress,
      "0.0.0.0:10256",
      "Address of /healthz, which load balancers of the cluster query; empty: it is not served.",
    ),
    "metrics-bind-address": flag(
      socketAddress,
      "127.0.0.1:10249",
      "Address of /metrics, without authentication; empty: it is not served.",
    ),
  }),
  ...loggingFlags,
  ...section("Other", {
    "feature-gates": flag(
      gateSettings("Gate=true,..."),
      {},
      "Accepted, so that all programs of a cluster can have the same list: the proxy has no feature gate.",
    ),
  }),
  ...otherFlags,
};

export const proxyProgram: Program<typeof proxyFlags> = {
  name: "svc proxy",
  summary: "Makes the addresses and node ports of services lead to their pods on this node, by nftables.",
  flags: proxyFlags,
  check: validateLogging,
};
