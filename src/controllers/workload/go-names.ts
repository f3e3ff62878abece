/**
 * Names of Go types and fields that the schema of a pod template lacks. Hashes of pod templates depend on them, since
 * Kubernetes hashes the printed Go value.
 */

/** Fields whose Go type has a name of its own, by struct and JSON name, without the package `v1`. */
export const namedTypes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  HostPathVolumeSource: { type: "HostPathType" },
  EmptyDirVolumeSource: { medium: "StorageMedium" },
  AzureDiskVolumeSource: { cachingMode: "AzureDataDiskCachingMode", kind: "AzureDataDiskKind" },
  LabelSelectorRequirement: { operator: "LabelSelectorOperator" },
  PersistentVolumeClaimSpec: { accessModes: "PersistentVolumeAccessMode", volumeMode: "PersistentVolumeMode" },
  VolumeResourceRequirements: { limits: "ResourceList", requests: "ResourceList" },
  ImageVolumeSource: { pullPolicy: "PullPolicy" },
  ContainerPort: { protocol: "Protocol" },
  ResourceRequirements: { limits: "ResourceList", requests: "ResourceList" },
  ContainerResizePolicy: { resourceName: "ResourceName", restartPolicy: "ResourceResizeRestartPolicy" },
  Container: {
    restartPolicy: "ContainerRestartPolicy",
    terminationMessagePolicy: "TerminationMessagePolicy",
    imagePullPolicy: "PullPolicy",
  },
  VolumeMount: { recursiveReadOnly: "RecursiveReadOnlyMode", mountPropagation: "MountPropagationMode" },
  HTTPGetAction: { scheme: "URIScheme" },
  Lifecycle: { stopSignal: "Signal" },
  Capabilities: { add: "Capability", drop: "Capability" },
  SecurityContext: { procMount: "ProcMountType" },
  SeccompProfile: { type: "SeccompProfileType" },
  AppArmorProfile: { type: "AppArmorProfileType" },
  EphemeralContainerCommon: {
    restartPolicy: "ContainerRestartPolicy",
    terminationMessagePolicy: "TerminationMessagePolicy",
    imagePullPolicy: "PullPolicy",
  },
  PodSpec: {
    restartPolicy: "RestartPolicy",
    dnsPolicy: "DNSPolicy",
    preemptionPolicy: "PreemptionPolicy",
    overhead: "ResourceList",
  },
  PodSecurityContext: {
    supplementalGroupsPolicy: "SupplementalGroupsPolicy",
    fsGroupChangePolicy: "PodFSGroupChangePolicy",
    seLinuxChangePolicy: "PodSELinuxChangePolicy",
  },
  NodeSelectorRequirement: { operator: "NodeSelectorOperator" },
  Toleration: { operator: "TolerationOperator", effect: "TaintEffect" },
  PodReadinessGate: { conditionType: "PodConditionType" },
  TopologySpreadConstraint: {
    whenUnsatisfiable: "UnsatisfiableConstraintAction",
    nodeAffinityPolicy: "NodeInclusionPolicy",
    nodeTaintsPolicy: "NodeInclusionPolicy",
  },
  PodOS: { name: "OSName" },
};

/** Go names of fields that are not the JSON name with a capital; by JSON name, or by `Struct.name`. */
const fieldNames: Readonly<Record<string, string>> = {
  metadata: "ObjectMeta",
  uid: "UID",
  apiVersion: "APIVersion",
  apiGroup: "APIGroup",
  fieldsV1: "FieldsV1",
  dnsPolicy: "DNSPolicy",
  dnsConfig: "DNSConfig",
  serviceAccount: "DeprecatedServiceAccount",
  "ProjectedVolumeSource.serviceAccountToken": "ServiceAccountToken",
  os: "OS",
  tty: "TTY",
  httpGet: "HTTPGet",
  httpHeaders: "HTTPHeaders",
  tcpSocket: "TCPSocket",
  grpc: "GRPC",
  ip: "IP",
  seLinuxOptions: "SELinuxOptions",
  seLinuxChangePolicy: "SELinuxChangePolicy",
  fsGroup: "FSGroup",
  fsGroupChangePolicy: "FSGroupChangePolicy",
  gmsaCredentialSpec: "GMSACredentialSpec",
  gmsaCredentialSpecName: "GMSACredentialSpecName",
  fsType: "FSType",
  gcePersistentDisk: "GCEPersistentDisk",
  awsElasticBlockStore: "AWSElasticBlockStore",
  nfs: "NFS",
  iscsi: "ISCSI",
  rbd: "RBD",
  cephfs: "CephFS",
  fc: "FC",
  csi: "CSI",
  storageos: "StorageOS",
  pdName: "PDName",
  pdID: "PdID",
  iqn: "IQN",
  iscsiInterface: "ISCSIInterface",
  chapAuthDiscovery: "DiscoveryCHAPAuth",
  chapAuthSession: "SessionCHAPAuth",
  wwids: "WWIDs",
  sslEnabled: "SSLEnabled",
  diskURI: "DataDiskURI",
  "GlusterfsVolumeSource.endpoints": "EndpointsName",
  "RBDVolumeSource.monitors": "CephMonitors",
  "RBDVolumeSource.image": "RBDImage",
  "RBDVolumeSource.pool": "RBDPool",
  "RBDVolumeSource.user": "RadosUser",
};

export function goFieldName(struct: string, field: string): string {
  return fieldNames[`${struct}.${field}`] ?? fieldNames[field] ?? `${field.charAt(0).toUpperCase()}${field.slice(1)}`;
}
