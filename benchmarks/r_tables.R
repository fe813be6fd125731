# Writes 26 labeled tables of R packages as CSV files, classes in the last column, for benchmarks/front_door.py.
#
#     Rscript benchmarks/r_tables.R FOLDER        needs caret, ipred, kernlab, MASS, mclust, mlbench, modeldata, survival

folder <- commandArgs(trailingOnly = TRUE)[1]
dir.create(folder, showWarnings = FALSE)

get_table <- function(package, name) {
  found <- new.env()
  suppressWarnings(data(list = name, package = package, envir = found))
  if (exists(name, envir = found)) get(name, found) else get(name, asNamespace(package))
}

save_table <- function(name, table, classes) {
  numbers <- sapply(table, function(column) is.numeric(column) || is.ordered(column) || is.logical(column))
  rows <- as.data.frame(lapply(table[, numbers, drop = FALSE], as.numeric))
  complete <- complete.cases(rows) & !is.na(classes)
  rows$class <- as.integer(factor(classes))
  write.csv(rows[complete, ], file.path(folder, paste0(name, ".csv")), row.names = FALSE)
}

# package, table, its column of classes, columns to leave out
tables <- list(
  c("mclust", "banknote", "Status"), c("mclust", "diabetes", "class"), c("mclust", "thyroid", "Diagnosis"),
  c("mclust", "chevron", "class"), c("ipred", "GlaucomaMVF", "Class"), c("kernlab", "musk", "Class"),
  c("kernlab", "spam", "type"), c("mlbench", "Ionosphere", "Class"), c("mlbench", "LetterRecognition", "lettr"),
  c("mlbench", "Satellite", "classes"), c("mlbench", "Shuttle", "Class"), c("mlbench", "Sonar", "Class"),
  c("mlbench", "Vehicle", "Class"), c("mlbench", "Vowel", "Class"), c("MASS", "biopsy", "class"), c("modeldata", "penguins", "species"),
  c("modeldata", "oils", "class"), c("modeldata", "pd_speech", "class"), c("caret", "dhfr", "Y"), c("modeldata", "ad_data", "Class"),
  c("modeldata", "cells", "class"), c("modeldata", "hpc_data", "class"), c("MASS", "Cars93", "Type"), c("caret", "scat", "Species"),
  c("survival", "pbc", "stage", "id", "time", "status"))
for (one in tables) {
  table <- get_table(one[1], one[2])
  save_table(one[2], table[, !(names(table) %in% one[-(1:2)])], table[[one[3]]])
}
crabs <- get_table("MASS", "crabs")
save_table("crabs", crabs[, c("FL", "RW", "CL", "CW", "BD")], paste(crabs$sp, crabs$sex))
