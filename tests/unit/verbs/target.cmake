# The library as programs get it; its private node lets the tests build contexts on a backend of their own.
target_link_libraries(test_verbs PRIVATE ibverbs verbena_uverbs)
target_compile_definitions(test_verbs PRIVATE VERBENA_LIBIBVERBS="$<TARGET_FILE:ibverbs>")
