//! The shapes of objects, one line a type: what decoding keeps, how a patch merges, and the numbers that `kubectl`
//! uses where it sends protobuf. As of 1.20; what newer servers know (`suspend`, `completionMode`) is
//! dropped as 1.20 drops it [unknown-field].

use std::collections::HashMap;
use std::sync::OnceLock;

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Text.
    Text,
    /// A whole number.
    Int,
    /// True or false.
    Bool,
    /// A moment.
    Time,
    /// An amount, as text or as a number.
    Amount,
    /// Bytes in base64.
    Bytes,
    /// Text by name.
    Texts,
    /// Amounts by name.
    Amounts,
    /// Bytes by name.
    Blobs,
    /// Anything at all.
    Any,
    /// A type of the table.
    Of(&'static str),
}

/// One field of a type.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldShape {
    /// Its name in JSON.
    pub(super) name: &'static str,
    /// Its number in protobuf, 0 where nobody needs it.
    pub(super) number: u64,
    /// What it holds.
    pub(super) shape: Shape,
    /// Whether there are several.
    pub(super) is_list: bool,
    /// The field by which the entries of a list are told apart where a strategic patch merges them.
    pub(super) merge_key: Option<&'static str>,
}

const TYPES: &str = "
Job: metadata=1 ObjectMeta, spec=2 JobSpec, status=3 JobStatus
JobSpec: parallelism=1 int, completions=2 int, activeDeadlineSeconds=3 int, selector=4 LabelSelector, manualSelector=5 bool, template=6 PodTemplateSpec, backoffLimit=7 int, ttlSecondsAfterFinished=8 int, completionMode=9 str, podReplacementPolicy=14 str
JobStatus: conditions []JobCondition@type, startTime time, completionTime time, active int, succeeded int, failed int
JobCondition: type str, status str, lastProbeTime time, lastTransitionTime time, reason str, message str
LabelSelector: matchLabels=1 texts, matchExpressions=2 []LabelSelectorRequirement
LabelSelectorRequirement: key=1 str, operator=2 str, values=3 []str
PodTemplateSpec: metadata=1 ObjectMeta, spec=2 PodSpec
ObjectMeta: name=1 str, generateName=2 str, namespace=3 str, selfLink=4 str, uid=5 str, resourceVersion=6 str, generation=7 int, creationTimestamp=8 time, deletionTimestamp=9 time, deletionGracePeriodSeconds=10 int, labels=11 texts, annotations=12 texts, ownerReferences=13 []OwnerReference@uid, finalizers=14 []str, managedFields []any
OwnerReference: kind=1 str, name=3 str, uid=4 str, apiVersion=5 str, controller=6 bool, blockOwnerDeletion=7 bool
PodSpec: volumes=1 []Volume@name, containers=2 []Container@name, restartPolicy=3 str, terminationGracePeriodSeconds=4 int, activeDeadlineSeconds=5 int, dnsPolicy=6 str, nodeSelector=7 texts, serviceAccountName=8 str, serviceAccount=9 str, nodeName=10 str, hostNetwork=11 bool, hostPID=12 bool, hostIPC=13 bool, securityContext=14 PodSecurityContext, imagePullSecrets=15 []LocalObjectReference@name, hostname=16 str, subdomain=17 str, affinity any, schedulerName=19 str, initContainers=20 []Container@name, automountServiceAccountToken=21 bool, tolerations=22 []Toleration, hostAliases []any, priorityClassName=24 str, priority=25 int, dnsConfig any, shareProcessNamespace=27 bool, readinessGates []any, runtimeClassName=29 str, enableServiceLinks=30 bool, preemptionPolicy=31 str, overhead amounts, topologySpreadConstraints []any, setHostnameAsFQDN bool, ephemeralContainers []any
PodSecurityContext: runAsUser int, runAsGroup int, runAsNonRoot bool, fsGroup int, fsGroupChangePolicy str, supplementalGroups []int, seLinuxOptions any, seccompProfile any, sysctls []any, windowsOptions any
LocalObjectReference: name=1 str
Toleration: key=1 str, operator=2 str, value=3 str, effect=4 str, tolerationSeconds=5 int
Container: name=1 str, image=2 str, command=3 []str, args=4 []str, workingDir=5 str, ports=6 []ContainerPort@containerPort, env=7 []EnvVar@name, resources=8 ResourceRequirements, volumeMounts=9 []VolumeMount@mountPath, livenessProbe any, readinessProbe any, startupProbe any, lifecycle any, terminationMessagePath=13 str, imagePullPolicy=14 str, securityContext any, stdin=16 bool, stdinOnce=17 bool, tty=18 bool, envFrom=19 []EnvFromSource, terminationMessagePolicy=20 str, volumeDevices []any
ContainerPort: name=1 str, hostPort=2 int, containerPort=3 int, protocol=4 str, hostIP=5 str
EnvVar: name=1 str, value=2 str, valueFrom=3 EnvVarSource
EnvVarSource: fieldRef=1 ObjectFieldSelector, resourceFieldRef=2 ResourceFieldSelector, configMapKeyRef=3 KeySelector, secretKeyRef=4 KeySelector
ObjectFieldSelector: apiVersion=1 str, fieldPath=2 str
ResourceFieldSelector: containerName=1 str, resource=2 str, divisor amount
KeySelector: name str, key=2 str, optional=3 bool
EnvFromSource: prefix=1 str, configMapRef SourceName, secretRef SourceName
SourceName: name str, optional bool
ResourceRequirements: limits=1 amounts, requests=2 amounts
VolumeMount: name=1 str, readOnly=2 bool, mountPath=3 str, subPath=4 str, mountPropagation=5 str, subPathExpr=6 str
Volume: name=1 str, hostPath HostPathSource, emptyDir EmptyDirSource, secret SecretSource, configMap ConfigMapSource, persistentVolumeClaim ClaimSource, nfs any, downwardAPI any, projected any, csi any, ephemeral any, gcePersistentDisk any, awsElasticBlockStore any, gitRepo any, iscsi any, glusterfs any, rbd any, flexVolume any, cinder any, cephfs any, flocker any, fc any, azureFile any, vsphereVolume any, quobyte any, azureDisk any, photonPersistentDisk any, portworxVolume any, scaleIO any, storageos any
HostPathSource: path str, type str
EmptyDirSource: medium str, sizeLimit amount
SecretSource: secretName str, items []KeyToPath, defaultMode int, optional bool
ConfigMapSource: name str, items []KeyToPath, defaultMode int, optional bool
KeyToPath: key str, path str, mode int
ClaimSource: claimName str, readOnly bool
Pod: metadata=1 ObjectMeta, spec=2 PodSpec, status=3 PodStatus
PodStatus: phase str, conditions []PodCondition@type, message str, reason str, nominatedNodeName str, hostIP str, podIP str, podIPs []any, startTime time, initContainerStatuses []any, containerStatuses []any, qosClass str, ephemeralContainerStatuses []any
PodCondition: type str, status str, lastProbeTime time, lastTransitionTime time, reason str, message str
Namespace: metadata=1 ObjectMeta, spec=2 NamespaceSpec, status=3 NamespaceStatus
NamespaceSpec: finalizers []str
NamespaceStatus: phase str, conditions []any
Node: metadata=1 ObjectMeta, spec=2 NodeSpec, status=3 NodeStatus
NodeSpec: podCIDR str, podCIDRs []str, providerID str, unschedulable bool, taints []Taint, configSource any, externalID str
Taint: key str, value str, effect str, timeAdded time
NodeStatus: capacity amounts, allocatable amounts, phase str, conditions []NodeCondition@type, addresses []NodeAddress@type, daemonEndpoints any, nodeInfo any, images []any, volumesInUse []str, volumesAttached []any, config any
NodeCondition: type str, status str, lastHeartbeatTime time, lastTransitionTime time, reason str, message str
NodeAddress: type str, address str
ConfigMap: metadata=1 ObjectMeta, data=2 texts, binaryData=3 blobs, immutable=4 bool
Secret: metadata=1 ObjectMeta, data=2 blobs, type=3 str, stringData=4 texts, immutable=5 bool
Service: metadata=1 ObjectMeta, spec any, status any
PersistentVolumeClaim: metadata=1 ObjectMeta, spec any, status any
ResourceQuota: metadata=1 ObjectMeta, spec=2 ResourceQuotaSpec, status=3 ResourceQuotaStatus
ResourceQuotaSpec: hard amounts, scopes []str, scopeSelector any
ResourceQuotaStatus: hard amounts, used amounts
PriorityClass: metadata=1 ObjectMeta, value=2 int, globalDefault=3 bool, description=4 str, preemptionPolicy=5 str
Event: metadata=1 ObjectMeta, involvedObject any, reason str, message str, source any, firstTimestamp time, lastTimestamp time, count int, type str, eventTime time, series any, action str, related any, reportingComponent str, reportingInstance str
Binding: metadata=1 ObjectMeta, target any
SelfSubjectAccessReview: metadata=1 ObjectMeta, spec=2 SelfSubjectAccessReviewSpec, status=3 any
SelfSubjectAccessReviewSpec: resourceAttributes=1 ResourceAttributes, nonResourceAttributes=2 NonResourceAttributes
ResourceAttributes: namespace=1 str, verb=2 str, group=3 str, version=4 str, resource=5 str, subresource=6 str, name=7 str
NonResourceAttributes: path=1 str, verb=2 str
SelfSubjectRulesReview: metadata=1 ObjectMeta, spec=2 SelfSubjectRulesReviewSpec, status=3 any
SelfSubjectRulesReviewSpec: namespace=1 str
DeleteOptions: gracePeriodSeconds=1 int, preconditions=2 Preconditions, orphanDependents=3 bool, propagationPolicy=4 str, dryRun=5 []str
Preconditions: uid=1 str, resourceVersion=2 str
";

type Types = HashMap<&'static str, Vec<FieldShape>>;

/// The fields of a type; none for a type that is not in the table.
pub(super) fn fields(of: &str) -> &'static [FieldShape] {
    static ALL: OnceLock<Types> = OnceLock::new();
    let all = ALL.get_or_init(|| TYPES.lines().filter_map(type_of).collect());
    all.get(of).map_or(&[], Vec::as_slice)
}

/// One field of a type.
pub(super) fn field(of: &str, name: &str) -> Option<&'static FieldShape> {
    fields(of).iter().find(|field| field.name == name)
}

fn type_of(line: &'static str) -> Option<(&'static str, Vec<FieldShape>)> {
    let (name, rest) = line.split_once(": ")?;
    Some((name, rest.split(", ").filter_map(field_of).collect()))
}

fn field_of(text: &'static str) -> Option<FieldShape> {
    let (name, of) = text.split_once(' ')?;
    let (name, number) = name.split_once('=').unwrap_or((name, "0"));
    let (of, merge_key) = match of.split_once('@') {
        Some((of, key)) => (of, Some(key)),
        None => (of, None),
    };
    let one = of.strip_prefix("[]");
    let shape = match one.unwrap_or(of) {
        "str" => Shape::Text,
        "int" => Shape::Int,
        "bool" => Shape::Bool,
        "time" => Shape::Time,
        "amount" => Shape::Amount,
        "bytes" => Shape::Bytes,
        "texts" => Shape::Texts,
        "amounts" => Shape::Amounts,
        "blobs" => Shape::Blobs,
        "any" => Shape::Any,
        other => Shape::Of(other),
    };
    Some(FieldShape {
        name,
        number: number.parse().ok()?,
        shape,
        is_list: one.is_some(),
        merge_key,
    })
}

#[cfg(test)]
mod tests {
    use super::{Shape, TYPES, fields};

    #[test]
    fn every_type_that_a_field_names_is_in_the_table() {
        for line in TYPES.lines().filter(|line| !line.is_empty()) {
            let (name, rest) = line.split_once(": ").unwrap();
            assert_eq!(fields(name).len(), rest.split(", ").count(), "{name}");
            for field in fields(name) {
                if let Shape::Of(other) = field.shape {
                    assert!(!fields(other).is_empty(), "{name}.{}: {other}", field.name);
                }
            }
        }
    }
}
