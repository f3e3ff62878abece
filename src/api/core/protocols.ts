/** The protocols of container, service and endpoint ports. */
export const PROTOCOLS: readonly string[] = ["SCTP", "TCP", "UDP"];
