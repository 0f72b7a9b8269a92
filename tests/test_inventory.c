#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture_inventory.h"
#include "inventory.h"

static struct statedir dir;
static struct snapshot view;
static const char *what = ""; /* is looked for */

static int set_up(struct scratch *here)
{
	(void)here;
	what = "";
	probe_begin(&view.probe, 1000, 1010);
	view.has_probe = true;
	return 0;
}

static struct fixture fixture = { .dir = &dir, .view = &view, .set_up = set_up };

#define TEST(f) FIXTURE_TEST(f, fixture)

static struct probe_gpu *show(int index, const char *uuid, const char *model)
{
	struct probe_gpu *gpu = &view.probe.gpus[view.probe.gpu_count++];

	*gpu = (struct probe_gpu){ .index = index, .total_mib = 24576, .is_known = true };
	text_copy(gpu->uuid, sizeof(gpu->uuid), uuid);
	text_copy(gpu->name, sizeof(gpu->name), model);
	(void)snprintf(gpu->bus_id, sizeof(gpu->bus_id), "0000:%02x:00.0", index + 1);
	return gpu;
}

static void look(void)
{
	assert_int_equal(snapshot_read(&view, 2000), 0);
	assert_int_equal(snapshot_judge(&view, 2000), 0);
}

static int adopt(void)
{
	return fixture_adopt(&view, 2000);
}

static void check_set(struct gpuset set, const char *slots)
{
	struct gpuset wanted = GPUSET_NONE;
	char hex[GPUSET_HEX_SIZE];

	for (; *slots; slots++)
		gpuset_add(&wanted, (unsigned)(*slots - '0'));
	gpuset_to_hex(&set, hex);
	if (!gpuset_equals(&set, &wanted))
		fail_msg("'%s' gives the set %s", what, hex);
}

/* --- lease files -------------------------------------------------------------------- */

static void new_gpus_get_files_and_slots(void **state)
{
	const struct gpu_record *gpu;

	(void)state;
	show(0, "GPU-aa", "RTX 4090");
	show(1, "GPU-bb", "RTX 4090");
	assert_int_equal(adopt(), 2);
	assert_int_equal(view.slots, 2);
	gpu = &view.gpus[1].file.gpu;
	assert_string_equal(gpu->uuid, "GPU-bb");
	assert_string_equal(gpu->model, "RTX 4090");
	assert_string_equal(gpu->bus_id, "0000:02:00.0");
	assert_string_equal(gpu->boot, dir.boot);
	assert_int_equal(gpu->index, 1);
	assert_int_equal(gpu->total_mib, 24576);
	assert_int_equal(adopt(), 0); /* nothing has changed, so nothing is written */
	show(2, "GPU-cc", "RTX 4090");
	assert_int_equal(adopt(), 1);
	assert_int_equal(snapshot_find_gpu(&view, "GPU-cc"), 2);
}

static void copies_follow_nvidia_smi(void **state)
{
	struct probe_gpu *seen = show(0, "GPU-aa", "RTX 4090");

	(void)state;
	assert_int_equal(adopt(), 1);
	seen->index = 5;
	seen->total_mib = 40000;
	assert_int_equal(adopt(), 1);
	assert_int_equal(view.gpus[0].file.gpu.index, 5);
	assert_int_equal(view.gpus[0].file.gpu.total_mib, 40000);
	assert_int_equal(adopt(), 0);
}

static void a_faulty_gpu_keeps_its_known_values(void **state)
{
	struct probe_gpu *seen = show(3, "GPU-aa", "RTX 4090");

	(void)state;
	assert_int_equal(adopt(), 1);
	seen->is_known = false;
	seen->index = -1;
	seen->total_mib = 0;
	seen->name[0] = seen->bus_id[0] = '\0';
	assert_int_equal(adopt(), 0);
	assert_int_equal(view.gpus[0].file.gpu.index, 3);
	assert_int_equal(view.gpus[0].file.gpu.total_mib, 24576);
	assert_string_equal(view.gpus[0].file.gpu.model, "RTX 4090");
	/* a GPU without a uuid cannot get a file */
	seen = show(4, "", "RTX 4090");
	seen->is_known = false;
	assert_int_equal(adopt(), 0);
	assert_int_equal(view.slots, 1);
}

static void a_pause_made_meanwhile_stays(void **state)
{
	struct probe_gpu *seen = show(0, "GPU-aa", "RTX 4090");
	struct lease_file file;
	struct gpu_record gpu;

	(void)state;
	assert_int_equal(adopt(), 1);
	gpu = view.gpus[0].file.gpu;
	gpu.is_paused = 1;
	text_copy(gpu.reason, sizeof(gpu.reason), "fan");
	assert_int_equal(lease_open_slot(&dir, 0, &file), 0);
	assert_int_equal(
		lease_write_gpu(&file, &gpu), 0); /* after this process has read it */
	lease_release(&file);
	seen->index = 7;
	assert_int_equal(inventory_adopt(&view, ""), 1);
	look();
	assert_int_equal(view.gpus[0].file.gpu.index, 7);
	assert_int_equal(view.gpus[0].file.gpu.is_paused, 1);
	assert_string_equal(view.gpus[0].file.gpu.reason, "fan");
}

static void a_locked_file_is_left_for_the_next_time(void **state)
{
	struct probe_gpu *seen = show(0, "GPU-aa", "RTX 4090");
	struct lease_file file;

	(void)state;
	assert_int_equal(adopt(), 1);
	seen->index = 7;
	assert_int_equal(lease_open_slot(&dir, 0, &file), 0);
	assert_int_equal(lease_lock(&file, 0), 0);
	assert_int_equal(adopt(), 0);
	assert_int_equal(view.gpus[0].file.gpu.index, 0);
	lease_release(&file);
	assert_int_equal(adopt(), 1);
	assert_int_equal(view.gpus[0].file.gpu.index, 7);
}

static void an_unreadable_record_is_made_anew(void **state)
{
	struct lease_file file;

	(void)state;
	show(0, "GPU-aa", "RTX 4090");
	assert_int_equal(adopt(), 1);
	assert_int_equal(lease_open_slot(&dir, 0, &file), 0);
	assert_int_equal(pwrite(file.fd, "#", 1, 0), 1);
	lease_release(&file);
	look();
	assert_true(view.gpus[0].is_broken);
	assert_int_equal(adopt(), 1);
	assert_false(view.gpus[0].is_broken);
	assert_string_equal(view.gpus[0].file.gpu.uuid, "GPU-aa");
	assert_int_equal(view.slots, 1);
	assert_true(view.gpus[0].is_doubtful); /* other records there may be lost */
}

static void a_file_with_another_slot_is_doubtful(void **state)
{
	(void)state;
	show(0, "GPU-aa", "RTX 4090");
	show(1, "GPU-bb", "RTX 4090");
	assert_int_equal(adopt(), 2);
	assert_string_equal(view.gpus[1].file.gpu.slot, "1");
	assert_int_equal(unlinkat(dir.fd, "gpu/slot.0", 0), 0);
	assert_int_equal(unlinkat(dir.fd, "gpu/slot.1", 0), 0);
	assert_int_equal(symlinkat("GPU-bb.lease", dir.fd, "gpu/slot.0"), 0);
	snapshot_release(&view); /* as another process, which has no file open */
	look();
	assert_int_equal(snapshot_find_gpu(&view, "GPU-bb"), 0);
	assert_true(view.gpus[0].is_doubtful);
	assert_true(adopt() > 0);
	assert_true(view.gpus[0].is_doubtful && view.gpus[1].is_doubtful);
	assert_int_equal(view.gpus[0].file.gpu.is_lost, 1);
	assert_int_equal(snapshot_find_gpu(&view, "GPU-aa"), 1);
}

static void a_lost_link_hides_no_lease(void **state)
{
	(void)state;
	show(0, "GPU-aa", "RTX 4090");
	show(1, "GPU-bb", "RTX 4090");
	show(2, "GPU-cc", "RTX 4090");
	assert_int_equal(adopt(), 3);
	assert_int_equal(unlinkat(dir.fd, "gpu/slot.0", 0), 0);
	view.probe.gpus[0] = view.probe.gpus[2]; /* GPU-aa is no longer in the probe */
	view.probe.gpu_count = 2;
	snapshot_release(&view); /* as another process, which has no file open */
	look();
	assert_int_equal(view.lease_count, 0);
	assert_true(adopt() > 0);
	assert_int_equal(snapshot_find_gpu(&view, "GPU-bb"), 1);
	assert_int_equal(snapshot_find_gpu(&view, "GPU-cc"), 2);
	assert_true(view.gpus[0].is_unusable);
	assert_false(view.gpus[0].is_doubtful || view.gpus[1].is_doubtful);
}

static void a_new_file_is_doubtful_while_a_job_lives_without_a_lease(void **state)
{
	struct other other = other_start(dir.fd, OTHER_LIVE);

	(void)state;
	show(0, "GPU-aa", "RTX 4090");
	assert_int_equal(adopt(), 1);
	assert_true(snapshot_withholds(&view, &view.gpus[0]));
	other_end(&other);
	look();
	assert_true(view.gpus[0].is_doubtful);
	assert_false(snapshot_withholds(&view, &view.gpus[0]));
}

/* --- choosing ----------------------------------------------------------------------- */

static void show_instance(uint32_t device, const char *uuid)
{
	struct probe_mig *mig = &view.probe.migs[view.probe.mig_count++];

	*mig = (struct probe_mig){ .gpu = view.probe.gpu_count - 1, .device = device };
	text_copy(mig->profile, sizeof(mig->profile), "1g.10gb");
	text_copy(mig->uuid, sizeof(mig->uuid), uuid);
}

/* Indices follow nvidia-smi; slots follow the order of arrival, 4 and 5 are instances. */
static void show_four(void)
{
	show(2, "GPU-cc00", "NVIDIA GeForce RTX 4090");
	show(0, "GPU-aa00", "NVIDIA A100-SXM4-80GB");
	show(1, "GPU-ab00", "NVIDIA A100-SXM4-40GB");
	show(3, "GPU-dd00", "NVIDIA H100")->has_mig = true;
	show_instance(1, "MIG-GPU-dd00/2/0");
	show_instance(0, "MIG-GPU-dd00/1/0");
	assert_int_equal(adopt(), 6);
}

static void models_are_chosen_by_any_part_in_any_case(void **state)
{
	(void)state;
	show_four();
	check_set(inventory_all(&view), "01245");
	check_set(inventory_by_model(&view, "a100"), "12");
	check_set(inventory_by_model(&view, "GEFORCE RTX"), "0");
	check_set(inventory_by_model(&view, "80gb"), "1");
	check_set(inventory_by_model(&view, "NVIDIA"), "01245");
	check_set(inventory_by_model(&view, "h100 mig"), "45");
	check_set(inventory_by_model(&view, "TPU"), "");
}

static void gpus_of_another_boot_are_not_chosen(void **state)
{
	(void)state;
	show_four();
	view.probe.gpu_count = 3;
	view.probe.mig_count = 0;
	for (unsigned slot = 3; slot < 6; slot++) {
		struct lease_file *file = &view.gpus[slot].file;

		text_copy(file->gpu.boot, BOOT_SIZE, "00000000000000000000000000000000");
		assert_int_equal(lease_write_gpu(file, &file->gpu), 0);
	}
	look();
	check_set(inventory_all(&view), "012");
	check_set(inventory_by_model(&view, "NVIDIA"), "012");
	assert_int_equal(inventory_by_index(&view, 3), -1);
	assert_int_equal(inventory_by_uuid(&view, "MIG-"), -1);
}

static void indices_are_nvidia_smis(void **state)
{
	(void)state;
	show_four();
	assert_int_equal(inventory_by_index(&view, 0), 1);
	assert_int_equal(inventory_by_index(&view, 1), 2);
	assert_int_equal(inventory_by_index(&view, 2), 0);
	assert_int_equal(inventory_by_index(&view, 3), 3); /* not one of its instances */
	assert_int_equal(inventory_by_index(&view, 4), -1);
	assert_int_equal(inventory_by_instance(&view, 3, 0), 5);
	assert_int_equal(inventory_by_instance(&view, 3, 1), 4);
	assert_int_equal(inventory_by_instance(&view, 3, 2), -1);
	assert_int_equal(inventory_by_instance(&view, 0, 0), -1);
}

static void instances_count_for_one_gpu_only(void **state)
{
	struct gpuset all;

	(void)state;
	show_four();
	all = inventory_all(&view);
	assert_int_equal(inventory_count_for(&view, &all, 1), 5);
	assert_int_equal(inventory_count_for(&view, &all, 2), 3);
}

static void operands_name_gpus_and_instances(void **state)
{
	static const struct {
		const char *list, *slots, *why;
	} table[] = {
		{ "0", "1", "" }, { "0-2", "012", "" }, { "3:1", "4", "" },
		{ "3", "345", "" }, { "GPU-dd", "345", "" }, { "2-3", "0345", "" },
		{ "MIG-GPU-dd00/1", "5", "" }, { "0,3:0", "15", "" },
		{ "4", "", "there is no GPU 4" },
		{ "0:1", "", "there is no MIG instance 0:1" },
		{ "GPU-a", "",
			"no GPU, or more than one, has a UUID that begins with 'GPU-a'" }
	};

	(void)state;
	show_four();
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct operand_walk walk = OPERAND_LIST(table[i].list, OPERAND_GPU);
		struct gpuset set = GPUSET_NONE;
		struct operand operand;
		struct why why = WHY_NONE;

		what = table[i].list;
		while (operand_next(&walk, &operand, &why) == 0)
			if (inventory_by_operand(&view, &operand, &set, &why) != 0)
				break;
		check_set(set, table[i].slots);
		assert_string_equal(why.text, table[i].why);
	}
}

static void a_uuid_may_be_shortened_while_it_is_unique(void **state)
{
	(void)state;
	show_four();
	assert_int_equal(inventory_by_uuid(&view, "GPU-cc00"), 0);
	assert_int_equal(inventory_by_uuid(&view, "gpu-c"), 0);
	assert_int_equal(inventory_by_uuid(&view, "GPU-aa"), 1);
	assert_int_equal(inventory_by_uuid(&view, "GPU-a"), -1);
	assert_int_equal(inventory_by_uuid(&view, "GPU-cc001"), -1);
}

static void cuda_visible_devices_bounds_as_cuda_reads_it(void **state)
{
	static const struct {
		const char *list, *slots;
	} table[] = { { "0", "1" }, { "0,1", "12" }, { "2,0", "01" }, { "0,0", "1" },
		{ "GPU-cc00", "0" }, { "GPU-c,0", "01" }, { "gpu-ab", "2" },
		{ "MIG-GPU-dd00/1/0", "5" }, { "mig-gpu-dd00/2", "4" },
		/* on a GPU with MIG enabled CUDA uses the first instance */
		{ "0,GPU-cc,3", "015" }, { "GPU-dd", "5" },
		/* the first invalid entry ends the list */
		{ "", "" }, { "-1", "" }, { "0,-1,1", "1" }, { "0,9,1", "1" },
		{ "0,,1", "1" }, { "0,x", "1" }, { "NoDevFiles", "" }, { "GPU-a,0", "" },
		{ "0,GPU-zz,1", "1" }, { "0,", "1" }, { " 0", "" }, { "0 ,1", "" },
		{ "cc00", "" }, { "MIG-", "" }, { "4294967296", "" },
		{ "99999999999999999999", "" } };

	(void)state;
	show_four();
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		what = table[i].list;
		check_set(inventory_by_visible(&view, what), table[i].slots);
	}
}

static void a_list_of_any_length_is_read(void **state)
{
	static char list[100000];

	(void)state;
	what = "a long list";
	show_four();
	memset(list, '1', sizeof(list) - 1);
	check_set(
		inventory_by_visible(&view, list), ""); /* the first entry is no index */
	for (size_t i = 1; i < sizeof(list) - 1; i += 2)
		list[i] = ',';
	check_set(inventory_by_visible(&view, list), "2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(new_gpus_get_files_and_slots),
		TEST(copies_follow_nvidia_smi),
		TEST(a_faulty_gpu_keeps_its_known_values),
		TEST(a_pause_made_meanwhile_stays),
		TEST(a_locked_file_is_left_for_the_next_time),
		TEST(an_unreadable_record_is_made_anew),
		TEST(a_file_with_another_slot_is_doubtful),
		TEST(a_lost_link_hides_no_lease),
		TEST(a_new_file_is_doubtful_while_a_job_lives_without_a_lease),
		TEST(models_are_chosen_by_any_part_in_any_case),
		TEST(gpus_of_another_boot_are_not_chosen),
		TEST(indices_are_nvidia_smis),
		TEST(instances_count_for_one_gpu_only),
		TEST(operands_name_gpus_and_instances),
		TEST(a_uuid_may_be_shortened_while_it_is_unique),
		TEST(cuda_visible_devices_bounds_as_cuda_reads_it),
		TEST(a_list_of_any_length_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
