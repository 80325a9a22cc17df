/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stand-in of railwright's tests for GPUs in their slots: a PCI root bus of its own, domain 0x1f, with
 * functions that say they are NVIDIA's H100 (10de:2330, a 3D controller), and have no registers, no
 * memory and no interrupt. They are in sysfs and lspci as any function; no driver finds work in them.
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/pci.h>

#define STANDIN_DOMAIN 0x1f
#define STANDIN_SLOTS 8

static unsigned int gpus = 1;
module_param(gpus, uint, 0444);

static const u32 config[16] = {
	[PCI_VENDOR_ID / 4] = 0x233010de,
	[PCI_CLASS_REVISION / 4] = 0x030200a1,
	[PCI_SUBSYSTEM_VENDOR_ID / 4] = 0x16c110de,
};

static int standin_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	u32 word;

	if (bus->number || PCI_FUNC(devfn) || PCI_SLOT(devfn) >= gpus) {
		*value = ~0U;
		return PCIBIOS_DEVICE_NOT_FOUND;
	}
	word = where < (int)sizeof(config) ? config[where / 4] : 0;
	word >>= 8 * (where & 3);
	*value = size == 4 ? word : word & ((1U << (8 * size)) - 1);
	return PCIBIOS_SUCCESSFUL;
}

/* Nothing of it can be written: a BAR that stays 0 is none. */
static int standin_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops standin_ops = { .read = standin_read, .write = standin_write };
static struct pci_sysdata standin_data = { .domain = STANDIN_DOMAIN, .node = NUMA_NO_NODE };
static struct resource standin_numbers = { .name = "stand-in GPUs", .flags = IORESOURCE_BUS };
static struct pci_bus *root;

static int __init standin_init(void)
{
	LIST_HEAD(resources);

	if (!gpus || gpus > STANDIN_SLOTS)
		return -EINVAL;
	pci_add_resource(&resources, &standin_numbers);
	pci_lock_rescan_remove();
	root = pci_scan_root_bus(NULL, 0, &standin_ops, &standin_data, &resources);
	if (root)
		pci_bus_add_devices(root);
	pci_unlock_rescan_remove();
	if (!root) {
		pci_free_resource_list(&resources);
		return -ENODEV;
	}
	return 0;
}

static void __exit standin_exit(void)
{
	pci_lock_rescan_remove();
	pci_stop_root_bus(root);
	pci_remove_root_bus(root);
	pci_unlock_rescan_remove();
}

module_init(standin_init);
module_exit(standin_exit);
MODULE_LICENSE("GPL");
MODULE_VERSION("@VERSION@");
MODULE_DESCRIPTION("stand-in of railwright's tests for GPUs on the PCI bus");
