import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { ip } from "../../flags/types/network.ts";
import { port } from "../../flags/types/number.ts";
import { bool, file } from "../../flags/types/text.ts";
import { suites, tlsVersion } from "../../flags/types/tls.ts";
import { inFile } from "./deprecation.ts";

export const servingFlags = section("Serving, TLS and access", {
  address: flag(ip, "0.0.0.0", "Serving IP; 0.0.0.0 or :: listens on all interfaces and families.", {
    config: "address",
    deprecated: inFile,
  }),
  port: flag(port("int32", "no-zero"), 10250, "Serving port.", { config: "port", deprecated: inFile }),
  "read-only-port": flag(
    port("int32", "zero-disables"),
    10255,
    "Read-only port with no authentication or authorization; 0 disables.",
    { config: "readOnlyPort", fileDefault: 0, deprecated: inFile },
  ),
  "healthz-bind-address": flag(ip, "127.0.0.1", "Health server bind IP; 0.0.0.0 or :: for all interfaces.", {
    config: "healthzBindAddress",
    deprecated: inFile,
  }),
  "healthz-port": flag(port("int32", "zero-disables"), 10248, "Local health port; 0 disables.", {
    config: "healthzPort",
    deprecated: inFile,
  }),
  "enable-server": flag(bool, true, "Enable the agent's server.", { config: "enableServer", deprecated: inFile }),
  "enable-debugging-handlers": flag(
    bool,
    true,
    "Enable server endpoints for log collection and for running containers and commands locally.",
    { config: "enableDebuggingHandlers", deprecated: inFile },
  ),
  "tls-cert-file": flag(
    file,
    "",
    "x509 certificate for HTTPS (intermediates appended after the server certificate). If this and the key " +
      "file are absent, a self-signed pair is generated for the public address and saved in --cert-dir.",
    { config: "tlsCertFile", deprecated: inFile },
  ),
  "tls-private-key-file": flag(file, "", "Private key matching --tls-cert-file.", {
    config: "tlsPrivateKeyFile",
    deprecated: inFile,
  }),
  "tls-cipher-suites": flag(suites("string"), [], "Cipher suites the server offers, comma-separated.", {
    config: "tlsCipherSuites",
    deprecated: inFile,
  }),
  "tls-min-version": flag(tlsVersion, "", "Lowest TLS version that the server accepts.", {
    config: "tlsMinVersion",
    deprecated: inFile,
  }),
  "rotate-certificates": flag(bool, false, "Request new client certificates from the API server as expiry nears.", {
    config: "rotateCertificates",
    deprecated: inFile,
  }),
  "rotate-server-certificates": flag(
    bool,
    false,
    "Request and rotate serving certificates; needs gate RotateKubeletServerCertificate (renamed " +
      "RotateSvcletServerCertificate, see Versioning) and approval of the submitted signing requests.",
    { config: "serverTLSBootstrap", gate: "RotateSvcletServerCertificate", deprecated: inFile },
  ),
  "streaming-connection-idle-timeout": flag(
    duration({ min: 0 }),
    14_400_000,
    "Idle time before a streaming connection is closed; 0 means no timeout. Every connection to the server " +
      "has a maximum lifetime of 4 hours regardless.",
    { config: "streamingConnectionIdleTimeout", deprecated: inFile },
  ),
  tunnel: flag(
    bool,
    false,
    "Open one connection to the API server, by which the API server connects to the agent's server: for nodes behind " +
      "NAT. Needs --svcconfig or --join, and an API server of svc.",
  ),
});
