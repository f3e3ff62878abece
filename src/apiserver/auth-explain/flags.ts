/** The flags of `svc apiserver auth explain`: those of the server, the credentials and the request. */
import { flag, section } from "../../flags/flag.ts";
import { repeated } from "../../flags/types/list.ts";
import { file, text } from "../../flags/types/text.ts";
import { apiserverFlags } from "../flags/flags.ts";

const explainFlags = section("Explanation", {
  token: flag(text, "", "Bearer token; - reads it from standard input."),
  "token-file": flag(file, "", "File with the bearer token."),
  "client-certificate": flag(
    file,
    "",
    "PEM file with a client certificate, and those of its intermediate authorities.",
  ),
  user: flag(text, "", "User name, in place of credentials."),
  group: flag(repeated({ element: "group", sample: "developers" }), [], "Group of that user; repeatable."),
  verb: flag(text, "", "Verb of the request: get, list, watch, create, update, patch, delete, deletecollection."),
  resource: flag(text, "", "Resource of the request: pods, pods/log, deployments.apps, deployments.apps/scale."),
  namespace: flag(text, "", "Namespace of the request; empty for all, or for a resource without."),
  name: flag(text, "", "Name of the object."),
  path: flag(text, "", "Path of a request that is for no resource: /healthz."),
  svcconfig: flag(file, "", "Connection to a running server, whose roles, accounts and secrets are read.", {
    defaultNote: "the store of --kvstore-servers, of a server that is stopped",
  }),
});

export const explainTable = { ...apiserverFlags, ...explainFlags };
