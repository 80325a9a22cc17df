"""Keys of beegfs-client.conf, by the major release of BeeGFS that reads them.

Source: _Config_loadDefaults and _Config_applyConfigMap in client_module/source/app/config/Config.c
and client_module/build/dist/etc/beegfs-client.conf of ThinkParQ/beegfs, 7.4 (7a9d067b, 8b06b389)
and 8.x (5f29a308, 2448fef7). A key that 7 does not know makes its mount fail; 8 passes it over
without a word.
"""

from typing import Literal

Kind = Literal["switch", "number", "text"]
Major = Literal[7, 8]


def _kinds(kind: Kind, names: str) -> dict[str, Kind]:
    return dict.fromkeys(names.split(), kind)


_SWITCHES = _kinds(
    "switch",
    """
logClientID connUseRDMA connTCPFallbackEnabled connUnmountRetries connDisableAuthentication
tuneRemoteFSync tuneUseGlobalFileLocks tuneRefreshOnGetAttr tuneEarlyCloseResponse
tuneUseGlobalAppendLocks tuneUseBufferedAppend tuneCoherentBuffers sysCreateHardlinksAsSymlinks
sysSyncOnClose sysSessionCheckOnClose sysSessionChecksEnabled sysXAttrsEnabled sysACLsEnabled
quotaEnabled sysRenameEbusyAsXdev
""",
)
_NUMBERS = _kinds(
    "number",
    """
logLevel connPortShift connMaxInternodeNum connFallbackExpirationSecs connCommRetrySecs
connTCPRcvBufSize connUDPRcvBufSize connRDMABufSize connRDMABufNum connRDMATypeOfService
connMaxConcurrentAttempts tuneFileCacheBufSize tuneFileCacheBufNum tunePageCacheValidityMS
tuneDirSubentryCacheValidityMS tuneFileSubentryCacheValidityMS tuneENOENTCacheValidityMS
tunePathBufSize tunePathBufNum tuneMsgBufSize tuneMsgBufNum tuneInodeBlockBits tuneStatFsCacheSecs
sysMountSanityCheckMS sysUpdateTargetStatesSecs sysTargetOfflineTimeoutSecs
remapConnectionFailureStatus
""",
)
# Sizes and counts of buffers may be words too: page, none, default.
_TEXTS = _kinds(
    "text",
    """
connInterfacesFile connInterfacesList connRDMAInterfacesFile connRDMAFragmentSize
connRDMAMetaBufSize connRDMAMetaFragmentSize connRDMAMetaBufNum connRDMAKeyType connNetFilterFile
connAuthFile connTcpOnlyFilterFile connMessagingTimeouts connRDMATimeouts tunePreferredMetaFile
tunePreferredStorageFile tuneFileCacheType sysMgmtdHost sysInodeIDStyle sysXAttrsCheckCapabilities
sysFileEventLogMask
""",
)
_BOTH = _SWITCHES | _NUMBERS | _TEXTS
_ONLY: dict[Major, dict[str, Kind]] = {
    7: {
        "connClientPortUDP": "number",
        "connMgmtdPortUDP": "number",
        "connMgmtdPortTCP": "number",
        "connHelperdPortTCP": "number",
        "logHelperdIP": "text",
        "logType": "text",
        "sysNoEnterpriseFeatureMsg": "switch",
    },
    8: {
        "connClientPort": "number",
        "connMgmtdPort": "number",
        "connDisableIPv6": "switch",
        "sysCacheInvalidationVersion": "switch",
        "sysSELinuxEnabled": "switch",
        "sysSELinuxRevalidate": "text",
        "sysACLsRevalidate": "text",
        "sysBypassFileAccessCheckOnMeta": "switch",
        "tuneFileOpenRetryTimeoutMS": "number",
        "tuneFileOpenRetryIntervalMS": "number",
    },
}
KEYS: dict[Major, dict[str, Kind]] = {major: {**_BOTH, **only} for major, only in _ONLY.items()}

MISTAKEN = {"connRDMAEnabled": "connUseRDMA"}
"""Keys that are written about and that no release has, with the one that is meant."""

CLIENT_PORT: dict[Major, tuple[str, ...]] = {7: ("connClientPortUDP",), 8: ("connClientPort",)}
MANAGEMENT_PORT: dict[Major, tuple[str, ...]] = {
    7: ("connMgmtdPortUDP", "connMgmtdPortTCP"),
    8: ("connMgmtdPort",),
}


def superseded(major: Major) -> tuple[str, ...]:
    """Names that the other major has for the ports.

    7 does not know those of 8; 8 refuses to mount where both stand (_Config_applyConfigMap).
    """
    other: Major = 8 if major == 7 else 7
    return (*CLIENT_PORT[other], *MANAGEMENT_PORT[other])


def majors_of(key: str) -> tuple[Major, ...]:
    return tuple(major for major, keys in KEYS.items() if key in keys)


def kind_of(key: str) -> Kind | None:
    """What the values of ``key`` are; None where no release has it."""
    return next((keys[key] for keys in KEYS.values() if key in keys), None)
