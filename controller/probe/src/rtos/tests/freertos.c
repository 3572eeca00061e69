/* Tasks as FreeRTOS keeps them on a Cortex-M4 without floating point: its names, its structures,
 * and a switch by PendSV. Nothing is scheduled: one task waits, and the other runs for good. */

#include <stdint.h>
#define REG(a) (*(volatile uint32_t *)(a))

struct xLIST;
struct xLIST_ITEM {
    uint32_t xItemValue;
    struct xLIST_ITEM *pxNext, *pxPrevious;
    void *pvOwner;
    struct xLIST *pxContainer;
};
struct xMINI_LIST_ITEM {
    uint32_t xItemValue;
    struct xLIST_ITEM *pxNext, *pxPrevious;
};
typedef struct xLIST {
    uint32_t uxNumberOfItems;
    struct xLIST_ITEM *pxIndex;
    struct xMINI_LIST_ITEM xListEnd;
} List_t;
typedef struct tskTaskControlBlock {
    volatile uint32_t *pxTopOfStack;
    struct xLIST_ITEM xStateListItem, xEventListItem;
    char pcTaskName[8];
} TCB_t;

extern uint32_t __stack_top[];
List_t pxReadyTasksLists[2], xSuspendedTaskList;
static List_t queue;
static TCB_t tasks[2];
TCB_t *volatile pxCurrentTCB;
static uint32_t stacks[2][64] __attribute__((aligned(8)));
volatile uint32_t events;

static void empty(List_t *list)
{
    list->xListEnd.pxNext = list->xListEnd.pxPrevious = (struct xLIST_ITEM *)&list->xListEnd;
}

static void insert(List_t *list, struct xLIST_ITEM *item, TCB_t *owner)
{
    item->pvOwner = owner;
    item->pxContainer = list;
    item->pxNext = (struct xLIST_ITEM *)&list->xListEnd;
    item->pxPrevious = list->xListEnd.pxPrevious;
    item->pxPrevious->pxNext = item;
    list->xListEnd.pxPrevious = item;
    list->uxNumberOfItems++;
}

__attribute__((noinline)) static uint32_t wait_for_event(void)
{
    while (events == 0) {
        REG(0xE000ED04) = 1u << 28; /* to the other task, for good */
        __asm volatile("dsb\n isb");
    }
    return events;
}

__attribute__((noinline)) static uint32_t read_sensor(void)
{
    return wait_for_event() + 1; /* the caller */
}

__attribute__((noreturn)) static void rx_task(void)
{
    for (;;)
        events += read_sensor();
}

__attribute__((noinline, noreturn, used)) void idle_task(void)
{
    for (;;)
        __asm volatile("nop");
}

__attribute__((used)) static void switch_tasks(void)
{
    pxCurrentTCB = &tasks[1];
}

__attribute__((naked)) static void pend_sv(void)
{
    __asm volatile("mrs r0, psp\n"
                   "stmdb r0!, {r4-r11}\n"
                   "ldr r1, =pxCurrentTCB\n"
                   "ldr r2, [r1]\n"
                   "str r0, [r2]\n"
                   "push {r1, lr}\n"
                   "bl switch_tasks\n"
                   "pop {r1, lr}\n"
                   "ldr r2, [r1]\n"
                   "ldr r0, [r2]\n"
                   "ldmia r0!, {r4-r11}\n"
                   "msr psp, r0\n"
                   "bx lr\n");
}

__attribute__((noreturn)) static void reset(void)
{
    empty(&pxReadyTasksLists[0]);
    empty(&pxReadyTasksLists[1]);
    empty(&xSuspendedTaskList);
    empty(&queue);
    insert(&xSuspendedTaskList, &tasks[0].xStateListItem, &tasks[0]);
    insert(&queue, &tasks[0].xEventListItem, &tasks[0]);
    insert(&pxReadyTasksLists[0], &tasks[1].xStateListItem, &tasks[1]);
    tasks[0].pcTaskName[0] = 'r';
    tasks[0].pcTaskName[1] = 'x';
    tasks[1].pcTaskName[0] = 'I';
    uint32_t *frame = stacks[1] + 64 - 8;
    frame[6] = (uint32_t)idle_task & ~1u;
    frame[7] = 1u << 24;
    tasks[1].pxTopOfStack = frame - 8;
    pxCurrentTCB = &tasks[0];
    __asm volatile("msr psp, %0\n msr control, %1\n isb" ::"r"(stacks[0] + 64), "r"(2));
    rx_task();
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    __stack_top, (void *)reset, (void *)reset, (void *)reset, (void *)reset, (void *)reset,
    (void *)reset, 0, 0, 0, 0, (void *)reset, 0, 0, (void *)pend_sv, 0,
};
